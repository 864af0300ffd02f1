"""Every state that a configuration can reach, breadth first, and whether all is well in each."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.model.effects import ROWS, Effect
from tests.faults.model.guards import Guards
from tests.faults.model.judge import Judge
from tests.faults.model.machine import SPARK, Action, apply
from tests.faults.model.opening import ACCEPT, OLD, parts
from tests.faults.model.reading import walk
from tests.faults.model.state import (
    AT_REST,
    BATCH,
    COMMITTING,
    DISCOVERY,
    HALTED,
    LOSS,
    ORPHAN,
    PLANNED,
    READY,
    RESTORE,
    Driver,
    Entry,
    Other,
    State,
    Table,
    Topic,
)

Node = tuple[State, tuple[int, ...]]
"""A state, and how often each fault of the configuration may still happen."""

LAG = 2
"""How many entries of a driver may wait to be projected while it goes on."""

FALSE_ALARM, DEAD_END = "FALSE ALARM", "DEAD END"


@dataclass(frozen=True)
class Configuration:
    """What is explored: where it begins, and which faults may happen, how often.

    ``may_halt`` are the codes that a driver may halt with, ``may_end`` those that may be the
    end of it: from any other state a complete one must be within reach. ``ways`` are those that
    each commit may go. ``last_wins``: see ``State``.
    """

    name: str
    about: str
    guards: Guards
    faults: Mapping[str, int] = field(default_factory=dict)
    records: int = 2
    drivers: int = 2
    bad: tuple[int, ...] = ()
    undecided: int = 0
    born: bool = True
    latest: bool = False
    starts: tuple[tuple[str, ...], ...] = ((),)
    may_halt: frozenset[str] = frozenset()
    may_end: frozenset[str] = frozenset()
    effect: Effect = ROWS
    ways: tuple[str, ...] = (SPARK,)
    last_wins: bool = False

    def under(self, name: str, about: str, faults: Mapping[str, int], **more: Any) -> Configuration:
        """The same under these faults, with other values for some fields."""
        return replace(self, name=name, about=about, faults=faults, **more)

    def first(self) -> State:
        """Where it begins: a table whose only entry says that reading starts at 0."""
        topic = Topic(high=self.records, end=self.records + self.undecided, bad=self.bad)
        discovery = Entry(DISCOVERY, 1, 0, 0, 1, commit=0, base=0)
        table = Table(log=(*Table().log, discovery), offsets=(discovery,)) if self.born else Table()
        checkpoints = (None,) * self.drivers if self._resumes() else ()
        drivers = (Driver(),) * self.drivers
        first = State(table, topic, drivers, checkpoints, effect=self.effect)
        return first._replace(last_wins=self.last_wins)

    def _resumes(self) -> bool:
        return not (self.guards.fresh_checkpoint and self.guards.ledger_sequence)


@dataclass(frozen=True)
class Explored:
    """What came of it; ``seconds`` are those of the processor.

    ``trace`` leads to the violation, if there is one, on a shortest way.
    """

    states: int
    seconds: float
    violation: str = ""
    trace: tuple[tuple[Action, State], ...] = ()


def explore(configuration: Configuration) -> Explored:
    """Visit every state; stop at the first that violates an invariant."""
    began = time.process_time()
    graph = _Graph(configuration)
    violation, at = graph.visit()
    if not violation:
        violation, at = graph.dead_end()
    trace = tuple(graph.way_to(at)) if violation else ()
    return Explored(len(graph.nodes), time.process_time() - began, violation, trace)


class _Graph:
    """The states found so far, how each was found, and every step between two of them."""

    def __init__(self, configuration: Configuration) -> None:
        self._about = configuration
        self._judge = Judge(configuration.guards, configuration.effect)
        self._kinds = tuple(configuration.faults)
        first = (configuration.first(), tuple(configuration.faults.values()))
        self.nodes: list[Node] = [first]
        self._found: dict[Node, int] = {first: 0}
        self._by: list[tuple[int, Action]] = [(0, ())]
        self._from, self._to = array("i"), array("i")

    def visit(self) -> tuple[str, int]:
        """Grow until nothing new is found; or the first violation, and the state it is in."""
        at = 0
        while at < len(self.nodes):
            for action, after in self._after(self.nodes[at]):
                to = self._found.get(after)
                if to is None:
                    to = self._found[after] = len(self.nodes)
                    self.nodes.append(after)
                    self._by.append((at, action))
                    violation = self._violation(after[0])
                    if violation:
                        return violation, to
                self._from.append(at)
                self._to.append(to)
            at += 1
        return "", 0

    def _after(self, node: Node) -> Iterator[tuple[Action, Node]]:
        state, left = node
        guards = self._about.guards
        for action in _steps(state, self._about):
            after = apply(state, action, guards)
            if after is not None and after != state:
                yield action, (after, left)
        for n, fault in enumerate(self._kinds):
            if left[n]:
                fewer = (*left[:n], left[n] - 1, *left[n + 1 :])
                for action in FAULTS[fault](state):
                    after = apply(state, action, guards)
                    if after is not None:
                        yield action, (after, fewer)

    def _violation(self, state: State) -> str:
        for driver in state.drivers:
            if driver.phase == HALTED and driver.code not in self._about.may_halt:
                return f"{FALSE_ALARM}: {driver.code}, and nothing gave reason to halt"
        return self._judge.violation(state)

    def dead_end(self) -> tuple[str, int]:
        """The first state from which neither a complete nor a rightly halted one is reached."""
        ends = {"complete", *self._about.may_end}
        lives = bytearray(self._judge.end(state) in ends for state, _ in self.nodes)
        into = array("i", [-1]) * len(self.nodes)
        following = array("i", [-1]) * len(self._to)
        for edge, to in enumerate(self._to):
            following[edge], into[to] = into[to], edge
        todo = [at for at, alive in enumerate(lives) if alive]
        while todo:
            edge = into[todo.pop()]
            while edge >= 0:
                before = self._from[edge]
                if not lives[before]:
                    lives[before] = 1
                    todo.append(before)
                edge = following[edge]
        at = lives.find(0)
        return ("", 0) if at < 0 else (f"{DEAD_END}: from here nothing is ever complete", at)

    def way_to(self, at: int) -> list[tuple[Action, State]]:
        """The steps from the beginning to a state."""
        way: list[tuple[Action, State]] = []
        while at:
            before, action = self._by[at]
            way.append((action, self.nodes[at][0]))
            at = before
        return way[::-1]


def _steps(state: State, about: Configuration) -> Iterator[Action]:
    """What drivers and operators may try at any time; ``apply`` knows what is enabled."""
    at = state.topic.high if about.latest else state.topic.low
    for d, driver in enumerate(state.drivers):
        if driver.phase in AT_REST:
            for options in about.starts:
                yield "start", d, options, at
        elif driver.phase == READY:
            yield from _plans(d, driver, state.topic)
        elif driver.phase == PLANNED:
            for way in about.ways:
                yield way, d, _unused(state)
        elif driver.phase in (COMMITTING, ORPHAN):
            yield "land", d
        if driver.unsent:
            yield "send", d
        for entry in driver.pending:
            yield "project", d, entry.sequence
        if len(driver.pending) <= LAG:
            yield "hand_over", d
        for step in ("stage", "see", "begin", "read_back", "close"):
            yield step, d
    for number in range(len(state.late)):
        yield "arrive", number
    yield from _remedies(state, about)


def _plans(d: int, driver: Driver, topic: Topic) -> Iterator[Action]:
    stands = 0 if driver.stream is None else driver.stream
    if driver.owes == LOSS:
        yield "plan", d, LOSS, stands, topic.low
    elif driver.owes:
        yield "plan", d, driver.owes, stands, stands
    else:
        for until in (stands + 1, stands + 2):
            yield "plan", d, BATCH, stands, until
            yield "plan", d, BATCH, stands, until, True


def _remedies(state: State, about: Configuration) -> Iterator[Action]:
    """One more RESTORE, where a batch was written over undone commits: to what is sound."""
    if any(ACCEPT in options for options in about.starts):
        log = state.table.log
        ledger = walk(log, state.table.first, True, True)
        if ledger.undone_at and not ledger.known:
            yield "restore", ledger.sound
        newest = max((n for n, e in enumerate(log) if isinstance(e, Entry)), default=0)
        undoing = log[ledger.undone_at]
        restored = isinstance(undoing, Other) and undoing.operation == RESTORE
        if restored and ledger.known and parts(log, state.topic, ledger.stands):
            # Only what stands now may be accepted as another topic. If the newest entry came over
            # an undoing, nothing but to make the table anew is left.
            undone_at = walk(log[: newest + 1], state.table.first, True, True).undone_at
            yield ("drop",) if undone_at else ("restore", newest)


def _unused(state: State) -> int:
    """The smallest commit id above all that were ever seen."""
    table = state.table
    ids = [each.commit for each in (*table.log, *table.offsets) if isinstance(each, Entry)]
    ids += [each.commit for each in table.quarantine]
    ids += [each.planned.commit for each in state.drivers if each.planned]
    ids += [each.entry.commit for each in state.late]
    ids += [commit for each in state.drivers for commit in each.given_up]
    ids += [*(each.commit for each in state.sink.received), *state.sink.broken]
    return 1 + max((each for each in ids if isinstance(each, int)), default=0)


def _each_driver(step: str, *more: object) -> Callable[[State], list[Action]]:
    return lambda state: [(step, d, *more) for d in range(len(state.drivers))]


FAULTS: Mapping[str, Callable[[State], list[Action]]] = {
    "crash": _each_driver("crash"),
    "orphan": _each_driver("orphan"),
    "fail": _each_driver("fail"),
    "time_out": _each_driver("time_out"),
    "conflict": _each_driver("conflict"),
    "heartbeat": _each_driver("start", (OLD,), 0),
    "answer": _each_driver("land", False),
    "leap": _each_driver("leap"),
    "lose_checkpoint": _each_driver("lose_checkpoint"),
    "produce": lambda state: [("produce", state.topic.high + 1)],
    "settle": lambda state: [("settle", True), ("settle", False)],
    "expire": lambda s: [("expire", low) for low in range(s.topic.low + 1, s.topic.high + 1)],
    "recreate": lambda state: [("recreate", 1), ("recreate", state.topic.high + 1)],
    "cut": lambda s: [("cut", high) for high in range(s.topic.low, s.topic.high)],
    "optimize": lambda state: [("optimize",)],
    "alter": lambda state: [("alter", False), ("alter", True)],
    "vacuum": lambda state: [("vacuum",)],
    "restore": lambda s: [("restore", n) for n in range(s.table.first, len(s.table.log) - 1)],
    "delete": lambda state: [("delete", n) for n in range(state.topic.high)],
    "empty": lambda state: [("empty",)],
    "trim": lambda s: [("trim", n) for n in range(s.table.first + 1, len(s.table.log))],
    "drop": lambda state: [("drop",)],
    "lose_tail": lambda s: [("lose_tail", n) for n in range(s.table.first, len(s.table.log) - 1)],
    "lose_offsets": lambda state: [("lose_offsets", n) for n in range(len(state.table.offsets))],
}
