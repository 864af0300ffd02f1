"""The model as a replay moves it: drivers by name, the log as it came to pass, and refusals."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.model.effects import FIRST, Effect
from tests.faults.model.guards import Guards
from tests.faults.model.machine import Action, apply
from tests.faults.model.sending import is_due
from tests.faults.model.state import (
    ACCEPTING,
    AT_REST,
    BATCH,
    COMMITTING,
    DEAD,
    HALTED,
    OPENED,
    PLANNED,
    READY,
    RETURNED,
    STAGED,
    VERIFIED,
    Driver,
    Entry,
    Other,
    State,
    Table,
    Topic,
)
from tests.faults.model.trace import Line, LogCommit, Place

FAR = 1 << 62
"""An end of the topic that no trace reaches: what Kafka holds is not traced."""

PHASES = {
    DEAD: "is not in a run",
    OPENED: "has not brought the offsets table up to date",
    READY: "has nothing under way",
    PLANNED: "has planned and not written",
    STAGED: "has a write under way",
    COMMITTING: "has a write under way",
    RETURNED: "has not read back what became of its write",
    VERIFIED: "has just committed",
}


class Refused(Exception):
    """A line that is no step of the model; line 0 is the end of the trace."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Stage:
    """The state of the model, for one partition, at ``line`` of a trace."""

    def __init__(
        self,
        lines: Sequence[Line],
        commits: Sequence[LogCommit],
        place: Place,
        guards: Guards,
        effect: Effect,
    ) -> None:
        self.lines, self.place, self.guards = lines, place, guards
        self.commits = {each.version: each for each in commits}
        self.versions = {each.id: each.version for each in commits if each.entry}
        self.names: list[str] = []
        self.line = lines[0]
        there = given(lines, commits, place)
        self.state = State(there, Topic(high=FAR, end=FAR), (), effect=effect)

    # Steps.

    def apply(self, action: Action) -> State | None:
        """What ``action`` would lead to."""
        return apply(self.state, action, self.guards)

    def take(self, action: Action) -> bool:
        """Take a step if it is enabled; a line that goes on where the model halts is refused."""
        after = self.apply(action)
        if after is None:
            return False
        both = zip(self.state.drivers, after.drivers, strict=True)
        codes = [now.code for before, now in both if now.code != before.code]
        if any(codes):
            raise self.refused(f"{self.line.step}, where the model halts with {codes[0]}")
        self.state = after
        return True

    # The log.

    @property
    def newest(self) -> int:
        """The newest version that has come to pass."""
        return len(self.state.table.log) - 1

    @property
    def may_advance(self) -> bool:
        """Whether the next version may have come to pass already, without a line that says so."""
        following = self.commits.get(self.newest + 1)
        if following is None or following.entry is None:
            return following is not None
        return bool(self._writers(following.id)) or self.arrives_next

    @property
    def arrives_next(self) -> bool:
        """Whether the next version is of a put whose client had gone."""
        following = self.commits.get(self.newest + 1)
        return following is not None and self._arriving(following.id) is not None

    def advance(self, version: int) -> None:
        """Let everything come to pass that lies in the log up to ``version``."""
        for each in range(self.newest + 1, version + 1):
            commit = self.commits.get(each)
            if commit is None:
                raise self.refused(f"version {each} is not in the log")
            if commit.entry:
                self._land(commit)
            else:
                table = self.state.table
                table = table._replace(log=(*table.log, commit.as_other()))
                self.state = self.state._replace(table=table)

    def _land(self, commit: LogCommit) -> None:
        """A commit of ours is there: somebody had planned just that, and Delta let it pass."""
        entry = commit.as_entry(self.place)
        what = f"version {commit.version} holds entry {entry.sequence}, commit {entry.commit}"
        planned, landed = self._arriving(entry.commit) or self._writing(entry.commit, what)
        if landed is None or landed.table.log == self.state.table.log:
            raise self.refused(f"{what}, which Delta should have skipped or refused")
        in_log = (entry.sequence, entry.start, entry.until, entry.accepts)
        meant = (planned.sequence, planned.start, planned.until, planned.accepts)
        self.claim("entry in the log", meant, in_log)
        kind = planned.kind if planned.kind in ACCEPTING else BATCH
        self.claim("kind of entry in the log", kind, entry.kind)
        self.state = landed

    def _arriving(self, commit: object) -> tuple[Entry, State | None] | None:
        """A put whose client had gone, and the state once it is there; None: it is no such one."""
        for number, each in enumerate(self.state.late):
            if each.entry.commit == commit:
                return each.entry, self.apply(("arrive", number))
        return None

    def _writing(self, commit: object, what: str) -> tuple[Entry, State | None]:
        """The entry that a driver writes, and the state once it is there."""
        writers = self._writers(commit)
        if not writers:
            raise self.refused(f"{what}, which no living driver was about to write")
        [(d, planned)] = writers
        if is_due(self.state, self.guards, d, FIRST):
            raise self.refused(f"{what}, whose records no sink had acknowledged")
        begun = self.apply(("begin", d))
        return planned, begun and apply(begun, ("land", d), self.guards)

    def _writers(self, commit: object) -> list[tuple[int, Entry]]:
        drivers = enumerate(self.state.drivers)
        planned = [(d, each.planned) for d, each in drivers if each.planned is not None]
        return [(d, each) for d, each in planned if each.commit == commit]

    # Drivers.

    def driver(self, line: Line) -> int:
        """The number of the driver that speaks; a new one gets the next."""
        if line.process not in self.names:
            self.names.append(line.process)
            self.state = self.state._replace(drivers=(*self.state.drivers, Driver()))
        return self.names.index(line.process)

    def phase(self, line: Line) -> str:
        """Where the driver that speaks is."""
        d = self.driver(line)
        return self.state.drivers[d].phase

    def expect(self, line: Line, *phases: str) -> int:
        """The number of the driver that speaks, which must be in one of these phases."""
        d = self.driver(line)
        driver = self.state.drivers[d]
        if driver.phase not in phases:
            halted = f"has halted with {driver.code}"
            where = halted if driver.phase == HALTED else PHASES[driver.phase]
            raise self.refused(f"{line.step}, but the driver {where}")
        return d

    def bury(self, line: Line, projected_silently: int = 0) -> None:
        """Those who never say a word again were killed, at the latest now.

        They may have moved the offsets table, up to an entry, and died before they could say so.
        """
        for d, name in enumerate(self.names):
            if max(each.turn for each in self.lines if each.process == name) < line.turn:
                if projected_silently:
                    self.state = self.apply(("project", d, projected_silently)) or self.state
                self.crash(d)

    def crash(self, d: int) -> None:
        """Kill a driver, if it lives. What it was putting into an object store may arrive later."""
        planned = self.state.drivers[d].planned
        if planned is not None and self.versions.get(planned.commit, -1) > self.newest:
            self.time_out(d)
        self.state = self.apply(("crash", d)) or self.state

    def time_out(self, d: int) -> None:
        """Let a driver give up what it is putting into an object store, if it does."""
        for step in ("begin", "time_out"):
            self.state = self.apply((step, d)) or self.state

    def alive_besides(self, d: int) -> list[str]:
        """The names of the other drivers that live."""
        drivers = enumerate(zip(self.names, self.state.drivers, strict=True))
        return [name for n, (name, each) in drivers if n != d and each.phase not in AT_REST]

    # Saying no.

    def claim(self, what: str, holds: object, said: object) -> None:
        """A line says something that must hold."""
        if holds != said:
            raise self.refused(f"{self.line.step} says {what} {said}; it is {holds}")

    def refused(self, reason: str) -> Refused:
        """The refusal of the present line."""
        by = f" [{self.line.process}]" if self.line.process else ""
        return Refused(self.line.number, f"{reason}{by}")


def given(lines: Sequence[Line], commits: Sequence[LogCommit], place: Place) -> Table:
    """What lay there where the trace begins: it is taken as given, and audited by a start.

    That is what the first ``open`` read, and nothing after the first traced write. Where drivers
    halted before that, others may have done something between: it comes to pass as they speak.
    """
    opened = next((each for each in lines if each.step == "open"), None)
    written = {each.facts["commit"] for each in lines if each.step == "write"}
    last = min((each.version for each in commits if each.id in written), default=FAR) - 1
    if opened:
        last = min(last, int(opened.facts["version"]))
    before = [each for each in commits if each.version <= last]
    while lines[0].step == "halt" and len(before) > 1 and not before[-1].entry:
        before.pop()
    first = before[0].version if before else 0
    log = tuple(each.as_entry(place) if each.entry else each.as_other() for each in before)
    entries = [each for each in log if isinstance(each, Entry)]
    hidden: tuple[Entry | Other, ...] = (Other("gone"),) * first
    if opened and first and not entries and opened.facts["sequence"]:
        at = opened.position_of(place)  # from the offsets table, which had to know it
        entries = [Entry("batch", int(opened.facts["sequence"]), at, at)]
        hidden = (*hidden[:-1], *entries)
    began = next((each for each in lines if each.step != "halt"), None)  # a halt moves nothing
    known = int(opened.facts["projected"]) if opened and opened is began else FAR
    rows = tuple(each for each in entries if each.sequence <= known)
    if began and began.step == "project":  # then something was left to project
        rows = rows[:-1]
    return Table((*hidden, *log), first, offsets=rows)
