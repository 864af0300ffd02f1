"""What each round of a campaign will do: chosen from the seed alone, so a seed repeats it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.attached import ALIVE
from tests.faults.campaign import endings, faults, operating
from tests.faults.campaign.world import PIPELINES, TABLES

COMPACTION = ("P20", "P21")
FILES_POINTS = ("P19", "P16", "P17", "P18", "P22", *COMPACTION)
"""Those that only rows pass which land as files."""
POINTS = ("P0", "P10", "P1", "P2", "P3", "P12", *FILES_POINTS, "P6", "P7", "P8", "P9", "P11")
_MADE = {
    "java": {"rename": 80, "unlink": 40, "mkdir": 78, "create": 120, "write": 140},
    "python": {
        "rename": 2,
        "link": 4,
        "unlink": 38,
        "mkdir": 6,
        "rmdir": 2,
        "create": 30,
        "write": 140,
    },
}
"""Calls that change files, as counted (``calls.CallControl.counts``) in a run of one batch of
each of the two pipelines; those of Python, and of its tasks, where the append lands as files. A
call of a task kills that task alone."""
CALLS = tuple(
    f"{program} {call} {k + 1}"
    for program, calls in _MADE.items()
    for call, most in calls.items()
    for k in range(most)
)
OF_STORES = ("P16", "P17", "P18", "P22", "P6", "P12", "P3")
"""Points around a commit."""
_MORE_DRIVERS, _MORE_LOSSES = 20, 10
"""So many more die in each round beyond one machine: it costs a tenth of a driver with its JVM."""
UNDOING = ("restore", "truncate")
HARMLESS = tuple(each for each in faults.DEEDS if each not in UNDOING)
LOST = ("executor", "worker", "python", "executors", "retired")
"""What a cluster loses while its driver lives."""
ENDINGS = (*endings.DEEDS,)
"""What a world ends with: nothing can go on behind it."""
OPERATIONS = (*operating.DEEDS,)
"""What somebody does on purpose, and what an operator then accepts."""
BEFORE_THE_COMMIT, AFTER_IT = ("P3",), ("P6", "P7", "P8")
ACCEPTING = ("", *BEFORE_THE_COMMIT, *AFTER_IT)
"""Where the process is killed that accepts it; empty: nowhere."""


@dataclass(frozen=True)
class Kill:
    """How a driver dies: ``kind`` and what it needs.

    ``point`` (detail ``P6=2*kill``), ``call`` (``java rename 7``: before the 7th), ``time``
    (seconds after the start), ``file`` (``log`` or ``data``: when one appears), ``freeze`` (as
    ``file``, but it is stopped, overtaken, and woken), ``orphan`` (Python alone dies, at a time).
    On a cluster the driver may live, and another process dies at a time or as ``file``:
    ``executor``, ``executors``, ``worker``, ``python``; ``retired``: one is asked to end.
    ``guest``: a driver dies at a point, as ``point``, and its JVM and its tasks live on.
    """

    kind: str
    detail: str


Fault = tuple[str, str]
"""Something that happens while no driver runs, and to which of the two tables or its topic."""


@dataclass(frozen=True)
class Operation:
    """Something that is done on purpose to a table or its topic, and then accepted.

    The process that accepts it is killed at ``point``, unless that is empty.
    """

    name: str
    table: str
    point: str


@dataclass(frozen=True)
class Ways:
    """Which way the batches of a round land.

    ``by_spark`` are the pipelines whose configuration says ``commit: spark``. The tables in
    ``asks`` ask for Spark's writer when the run begins; with those in ``amid`` that changes in the
    run.
    ``small``: the batches of the upsert are small, so that the next one is planned while one is
    merged.
    """

    by_spark: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    amid: tuple[str, ...] = ()
    small: bool = False


@dataclass(frozen=True)
class Round:
    """One round: records come in, faults happen, somebody accepts what he did on purpose, and
    then a driver starts and dies."""

    number: int
    kill: Kill
    faults: tuple[Fault, ...]
    operation: Operation | None = None
    ways: Ways = Ways()
    two: bool = False
    """Two drivers work at once, and none dies."""
    more: tuple[Kill, ...] = ()
    """What dies after that: drivers that work in the JVM of another one, or more of a cluster."""


def round_of(seed: int, number: int, aims: Sequence[str] = ()) -> Round:
    """The plan of one round. Points and calls are gone through in order, all else is drawn.

    ``aims``: the calls and points to kill at, in turn, in place of all kinds.
    """
    dice = random.Random(f"{seed} {number}")
    faults = tuple(
        (dice.choice(HARMLESS if dice.random() < 0.8 else UNDOING), dice.choice(TABLES))
        for _ in range(dice.choice((0, 0, 1, 1, 2)))
    )
    kill = _aimed(aims[number % len(aims)]) if aims else _kill(dice, number)
    return Round(number, kill, faults, _operation(seed, number), _ways(seed, number, kill))


def stored(plan: Round, seed: int) -> Round:
    """The plan of a round whose tables are in an object store: no commit is Spark's, and the
    calls of a process change no table. In every tenth round two drivers work at once. In each one
    some more drivers die, at one of the points at which their JVM may live on.
    """
    dice, kill = random.Random(f"{seed} {plan.number} store"), plan.kill
    if kill.kind == "call":
        points = (*OF_STORES, "time", "orphan")
        kind = points[plan.number % len(points)]
        if kind in OF_STORES:
            kill = Kill("point", f"{kind}={dice.randint(1, 3)}*kill")
        else:
            kill = Kill(kind, f"{dice.uniform(0.2, 4):.2f}")
    alive = [each for each in POINTS if each in ALIVE]
    more = tuple(Kill("guest", f"{dice.choice(alive)}=1*kill") for _ in range(_MORE_DRIVERS))
    small = Ways(small=plan.ways.small)
    return replace(plan, kill=kill, ways=small, two=plan.number % 10 == 9, more=more)


def clustered(plan: Round, seed: int) -> Round:
    """The plan of a round whose tasks run on a cluster: in three of four the driver lives, and
    something of the cluster is lost.
    """
    turn, kind = divmod(plan.number, 4)
    dice = random.Random(f"{seed} {plan.number} cluster")

    def lost(number: int) -> Kill:
        detail = dice.choice(("data", "log", f"{dice.uniform(0.2, 6):.2f}"))
        return Kill(LOST[number % len(LOST)], detail)

    first = plan.kill if plan.two or kind == 3 else lost(3 * turn + kind)
    more = tuple(lost(plan.number + number) for number in range(1, _MORE_LOSSES + 1))
    return replace(plan, kill=first, more=more)


def ending_of(seed: int, number: int) -> Fault:
    """How the world ends that began with round ``number``."""
    dice = random.Random(f"{seed} {number} ending")
    return dice.choice(ENDINGS), dice.choice(TABLES)


def _operation(seed: int, number: int) -> Operation | None:
    """In every third round, with dice of its own: what else a seed means stays as it was."""
    turn, rest = divmod(number, 3)
    if rest != 1:
        return None
    dice = random.Random(f"{seed} {number} operation")
    return Operation(
        OPERATIONS[turn % len(OPERATIONS)], dice.choice(TABLES), dice.choice(ACCEPTING)
    )


def _ways(seed: int, number: int, kill: Kill) -> Ways:
    """With dice of its own. Where the driver is to die at a point of files, all land as files; and
    in several batches, where that is one of compaction.
    """
    dice = random.Random(f"{seed} {number} ways")

    def some(names: Sequence[str], part: float) -> tuple[str, ...]:
        return tuple(name for name in names if dice.random() < part)

    ways = Ways(some(PIPELINES, 0.25), some(TABLES, 0.25), some(TABLES, 0.5), dice.random() < 0.25)
    if kill.detail.startswith(COMPACTION):
        return Ways(small=True)
    return Ways(small=ways.small) if kill.detail.startswith(FILES_POINTS) else ways


def _aimed(aim: str) -> Kill:
    return Kill("point", f"{aim}=1*kill") if aim in POINTS else Kill("call", aim)


def _kill(dice: random.Random, number: int) -> Kill:
    turn, kind = divmod(number, 8)
    if kind < 2:
        step = 2 * turn + kind
        return Kill("point", f"{POINTS[step % len(POINTS)]}={1 + step // len(POINTS) % 3}*kill")
    if kind < 7:
        # Steps of 37, coprime to their number, so that a short campaign sees all sorts.
        return Kill("call", CALLS[37 * (5 * turn + kind - 2) % len(CALLS)])
    other = ("file", "time", "orphan", "file", "freeze")[turn % 5]
    if other in ("file", "freeze"):
        return Kill(other, dice.choice(("log", "data")))
    return Kill(other, f"{dice.uniform(0.2, 4):.2f}")
