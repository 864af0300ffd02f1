"""A guard taken out where rows land as files, or through Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.faults.model.both_ways import BOTH
from tests.faults.model.configurations import BROKEN, CHANGING, CUT, FILES, KAFKA, OBJECTS, RIVALS
from tests.faults.model.definition import UNFIT
from tests.faults.model.explore import Configuration
from tests.faults.model.judge import DUPLICATE, LOST, MIXED, UNSEEN, UNWRITTEN
from tests.faults.model.machine import AS_FILES
from tests.faults.model.removals import Removal

_ONE = Configuration("", "", FILES, drivers=1, ways=BOTH)
_TWO = Configuration("", "", OBJECTS, may_halt=RIVALS, ways=BOTH)

_MOVED = replace(_ONE, may_halt=KAFKA, may_end=frozenset({MIXED}))


def _without(guard: str, harm: str, within: Configuration, of: str = "", **faults: int) -> Removal:
    return Removal((guard,), harm, replace(within, faults=faults), of)


BOTH_WAYS_REMOVALS: Sequence[Removal] = (
    _without("exact_version", DUPLICATE, _TWO),
    _without("exact_version", UNFIT, _ONE, "one at a time", alter=1),
    _without("commit_lock", UNWRITTEN, _ONE, optimize=1),
    _without("files_txn", DUPLICATE, replace(_TWO, may_halt=RIVALS | BROKEN)),
    _without("left_to_spark", UNFIT, _ONE, alter=1),
    _without("looked_at", UNSEEN, replace(_MOVED, starts=CHANGING), recreate=1),
    _without("read_again", LOST, replace(_MOVED, starts=CUT), cut=1, produce=1),
    _without("waits_for_range", DUPLICATE, _ONE, answer=1),
    _without("waits_for_definition", UNFIT, _ONE, alter=1),
    _without("waits_whole", LOST, _ONE, optimize=1, vacuum=1),
    _without("waits_good", LOST, replace(_ONE, bad=(0,)), optimize=1),
    _without(
        "quarantine_ahead",
        LOST,
        replace(_ONE, drivers=2, bad=(0,), ways=(AS_FILES,)),
        "as files",
        crash=1,
    ),
    _without(
        "quarantine_tagged",
        DUPLICATE,
        replace(_ONE, bad=(0,), ways=(AS_FILES,)),
        "as files",
        optimize=1,
    ),
)
