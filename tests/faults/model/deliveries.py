"""What is explored of totals, of first rows, and of records that are sent.

An entry without rows, and that of a batch that is sent, is committed by the driver, or through
Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.faults.model.both_ways import BOTH
from tests.faults.model.configurations import (
    BROKEN,
    CHANGING,
    FILES,
    KAFKA,
    OBJECTS,
    OPERATOR,
    RIVALS,
    TRIMMED,
    UNDONE,
)
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, FIRST_ROWS, TOTALS, Effect
from tests.faults.model.explore import Configuration
from tests.faults.model.judge import MIXED
from tests.faults.model.opening import COMMIT_FAILED

_ONE = Configuration(
    name="one at a time",
    about="kills, an orphaned JVM, failed writes, lost answers",
    guards=FILES,
    faults={"crash": 2, "fail": 1, "answer": 1, "orphan": 1},
    records=3,
    drivers=1,
)
_TWO = Configuration(
    name="two at once",
    about="no lock: two drivers live, freeze and are killed",
    guards=OBJECTS,
    faults={"crash": 1},
    may_halt=RIVALS,
)
_UNDONE = Configuration(
    name="restore",
    about="RESTORE and TRUNCATE at any moment, and each is accepted; a kill",
    guards=FILES,
    faults={"restore": 1, "empty": 1, "crash": 1},
    drivers=1,
    starts=OPERATOR,
    may_halt=UNDONE,
    may_end=BROKEN,
)
_TRIMMED = Configuration(
    name="clean-up",
    about="RESTORE, and log clean-up, at any moment; a kill",
    guards=FILES,
    faults={"restore": 1, "trim": 1, "crash": 1},
    drivers=1,
    starts=OPERATOR,
    may_halt=UNDONE | TRIMMED | {COMMIT_FAILED},
    may_end=TRIMMED | BROKEN,
)
_CHANGED = Configuration(
    name="another topic",
    about="the topic created again at any moment, and that is accepted; a kill",
    guards=FILES,
    faults={"recreate": 1, "crash": 1},
    drivers=1,
    starts=CHANGING,
    may_halt=KAFKA,
    may_end=frozenset({MIXED}),
)


_ALTERED = Configuration(
    name="altered",
    about="the table altered, so that it asks for Spark's writer or not; other writers; a kill",
    guards=FILES,
    faults={"alter": 2, "optimize": 1, "fail": 1, "crash": 1},
    records=1,
    drivers=1,
)


_WITH_BAD = tuple(replace(each, bad=(1,)) for each in (_ONE, _TWO, replace(_ALTERED, records=2)))
_OF_ROWS = (*_WITH_BAD, _UNDONE, _TRIMMED, _CHANGED)
_SENT = (_ONE, _TWO, replace(_UNDONE, records=1), _TRIMMED, _CHANGED, _ALTERED)


def _all(name: str, effect: Effect) -> Iterator[Configuration]:
    for each in _SENT if effect.sends else _OF_ROWS:
        yield replace(each, name=f"{name}, {each.name}", effect=effect, ways=BOTH)


DELIVERIES: Sequence[Configuration] = (
    *_all("totals", TOTALS),
    *_all("first rows", FIRST_ROWS),
    *_all("at least once", AT_LEAST_ONCE),
    *_all("at most once", AT_MOST_ONCE),
)
