"""What each round of a campaign will do: chosen from the seed alone, so a seed repeats it."""

from __future__ import annotations

import random
from dataclasses import dataclass

POINTS = ("P0", "P10", "P1", "P2", "P3", "P12", "P6", "P7", "P8", "P9", "P11")
_MOST = (
    *(("jvm", call, most) for call, most in (("rename", 30), ("mkdir", 21), ("unlink", 17))),
    ("jvm", "fchmodat", 1),
    *(("python", call, most) for call, most in (("unlinkat", 12), ("mkdir", 3), ("unlink", 2))),
    *(("python", call, 1) for call in ("rename", "linkat", "rmdir")),
)
"""File-mutating system calls of a run of two pipelines, and how many one thread makes at most:
counted with ``strace -f`` over Spark, Delta and delta-rs."""
CALLS = tuple(f"{who} {call} {k + 1}" for who, call, most in _MOST for k in range(most))
HARMLESS = (
    "checkpoints wiped",
    "checkpoints corrupt",
    "offsets table gone",
    "offsets table stale",
    "left-over files",
    "optimize",
    "vacuum",
    "delta checkpoint",
    "log clean-up",
    "partition added",
    "broker frozen",
)
UNDOING = ("restore", "truncate")
TABLES = ("events", "accounts")


@dataclass(frozen=True)
class Kill:
    """How a driver dies: ``kind`` and what it needs.

    ``point`` (detail ``P6=2*kill``), ``call`` (``jvm rename 7``: before the 7th), ``time``
    (seconds after the start), ``file`` (``log`` or ``data``: when one appears), ``freeze`` (as
    ``file``, but it is stopped, overtaken, and woken), ``orphan`` (Python alone dies, at a time).
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class Fault:
    """Something that happens to the world while no driver runs, to one of the two tables."""

    name: str
    table: str


@dataclass(frozen=True)
class Round:
    """One round: records come in, faults happen, a driver starts and dies."""

    number: int
    kill: Kill
    faults: tuple[Fault, ...]


def round_of(seed: int, number: int) -> Round:
    """The plan of one round. Points and calls are gone through in order, all else is drawn."""
    dice = random.Random(f"{seed} {number}")
    faults = tuple(
        Fault(dice.choice(HARMLESS if dice.random() < 0.8 else UNDOING), dice.choice(TABLES))
        for _ in range(dice.choice((0, 0, 1, 1, 2)))
    )
    return Round(number, _kill(dice, number), faults)


def _kill(dice: random.Random, number: int) -> Kill:
    turn, kind = divmod(number, 8)
    if kind < 3:
        step = 3 * turn + kind
        return Kill("point", f"{POINTS[step % len(POINTS)]}={1 + step // len(POINTS) % 3}*kill")
    if kind < 6:
        # Steps of 37, coprime to their number, so that a short campaign sees all sorts.
        return Kill("call", CALLS[37 * (3 * turn + kind - 3) % len(CALLS)])
    if kind == 6:
        return Kill("file", dice.choice(("log", "data")))
    if turn % 6 == 5:
        return Kill("freeze", dice.choice(("log", "data")))
    return Kill(("time", "orphan")[turn % 2], f"{dice.uniform(0.2, 4):.2f}")
