"""What is explored of commits that may be the driver's, or Spark's: of appends, totals and first
rows as files, and of records that are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.faults.model.configurations import (
    LOCKED,
    LOG_CUT,
    ONE,
    RESTORED_CLEANED_UP,
    RESTORED_TWICE,
    TOPIC_CHANGED,
    TWO,
)
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, FIRST_ROWS, TOTALS, Effect
from tests.faults.model.explore import Configuration
from tests.faults.model.machine import AS_FILES, SPARK
from tests.faults.model.opening import BATCH_FAILED, RETENTION_LOST

BOTH = (SPARK, AS_FILES)
EFFECTS = {
    TOTALS: "totals",
    FIRST_ROWS: "first rows",
    AT_LEAST_ONCE: "at least once",
    AT_MOST_ONCE: "at most once",
}

_APPENDS: Sequence[Configuration] = (
    ONE.under(
        "one at a time",
        "file system, lock; kills, an orphaned JVM, failed writes, lost answers",
        {"crash": 2, "fail": 1, "answer": 1, "orphan": 1},
        records=3,
        bad=(1,),
    ),
    ONE.under(
        "altered",
        "the table altered, so that it asks for Spark's writer or not; VACUUM; other writers",
        {"alter": 3, "vacuum": 1, "fail": 1, "crash": 1},
    ),
    TWO.under(
        "two at once",
        "no lock: two drivers live, freeze and are killed; bad records",
        {"crash": 1},
        bad=(1,),
    ),
    TWO.under(
        "two, altered",
        "two drivers live, and the table is altered",
        {"alter": 1, "crash": 1},
        records=1,
    ),
    RESTORED_TWICE.under(
        "restore",
        "RESTORE at any moment, which takes ALTER back, too, and is accepted",
        {"restore": 1, "alter": 1},
        drivers=1,
    ),
    RESTORED_CLEANED_UP.under(
        "clean-up",
        "RESTORE, log clean-up and OPTIMIZE, at any moment; a kill",
        {"restore": 1, "trim": 1, "optimize": 1, "crash": 1},
        records=1,
        drivers=1,
    ),
    ONE.under(
        "retention",
        "retention takes records whose files wait; losses recorded or halted for",
        {"expire": 1, "optimize": 2, "crash": 1},
        bad=(1,),
        may_halt=frozenset({RETENTION_LOST, BATCH_FAILED}),
        may_end=frozenset({RETENTION_LOST}),
    ),
    TOPIC_CHANGED.under(
        "another topic",
        "the topic created again while files wait, and that is accepted; a kill",
        {"recreate": 1, "optimize": 1, "crash": 1},
    ),
    LOG_CUT.under(
        "log cut",
        "an unclean leader election while files wait, records after it; that is accepted",
        {"cut": 1, "optimize": 2, "produce": 1},
    ),
)

_ALONE = ONE.under(
    "one at a time",
    "kills, an orphaned JVM, failed writes, lost answers",
    {"crash": 2, "fail": 1, "answer": 1, "orphan": 1},
    records=3,
)
_RIVALS = TWO.under("two at once", "no lock: two drivers live, freeze and are killed", {"crash": 1})
_UNDONE = RESTORED_TWICE.under(
    "restore",
    "RESTORE and TRUNCATE at any moment, and each is accepted; a kill",
    {"restore": 1, "empty": 1, "crash": 1},
    drivers=1,
)
_TRIMMED = RESTORED_CLEANED_UP.under(
    "clean-up",
    "RESTORE, and log clean-up, at any moment; a kill",
    {"restore": 1, "trim": 1, "crash": 1},
    drivers=1,
)
_CHANGED = TOPIC_CHANGED.under(
    "another topic",
    "the topic created again at any moment, and that is accepted; a kill",
    {"recreate": 1, "crash": 1},
)
_ALTERED = ONE.under(
    "altered",
    "the table altered, so that it asks for Spark's writer or not; other writers; a kill",
    {"alter": 2, "optimize": 1, "fail": 1, "crash": 1},
    records=1,
)
_WITH_BAD = tuple(
    replace(each, bad=(1,)) for each in (_ALONE, _RIVALS, replace(_ALTERED, records=2))
)
_OF_ROWS = (*_WITH_BAD, _UNDONE, _TRIMMED, _CHANGED)
_SENT = (_ALONE, _RIVALS, replace(_UNDONE, records=1), _TRIMMED, _CHANGED, _ALTERED)


def _all(name: str, effect: Effect, each_of: Sequence[Configuration]) -> Iterator[Configuration]:
    for each in each_of:
        yield replace(each, name=f"{name}, {each.name}", effect=effect, ways=BOTH)


BOTH_WAYS: Sequence[Configuration] = (
    *_all("both ways", LOCKED.effect, _APPENDS),
    *(
        each
        for effect, name in EFFECTS.items()
        for each in _all(name, effect, _SENT if effect.sends else _OF_ROWS)
    ),
)
