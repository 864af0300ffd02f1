"""A guard taken out where batches keep totals or first rows, or send their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.faults.model.both_ways import BOTH
from tests.faults.model.configurations import (
    BROKEN,
    FILES,
    OBJECTS,
    OPERATOR,
    RIVALS,
    UNDONE,
)
from tests.faults.model.definition import UNFIT
from tests.faults.model.effect_judge import REPEATED, UNSENT, WRONG_ROWS
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, FIRST_ROWS, TOTALS, Effect
from tests.faults.model.explore import Configuration
from tests.faults.model.judge import DUPLICATE
from tests.faults.model.removals import Removal

_NAMES = {
    TOTALS: "totals",
    FIRST_ROWS: "first rows",
    AT_LEAST_ONCE: "at least once",
    AT_MOST_ONCE: "at most once",
}
_ONE = Configuration("", "", FILES, {"crash": 1}, drivers=1)
_TWO = Configuration("", "", OBJECTS, may_halt=RIVALS)
_RIVALS = replace(_TWO, records=1, ways=BOTH)
_TO_AND_FRO = replace(_ONE, faults={"restore": 2}, starts=OPERATOR, may_halt=UNDONE, may_end=BROKEN)


def _without(guard: str, effect: Effect, harm: str, within: Configuration) -> Removal:
    return Removal(tuple(guard.split()), harm, replace(within, effect=effect), _NAMES[effect])


DELIVERY_REMOVALS: Sequence[Removal] = (
    _without("txn", TOTALS, WRONG_ROWS, _TWO),
    _without("fresh_checkpoint contiguity", TOTALS, WRONG_ROWS, replace(_ONE, drivers=2)),
    _without("rows_unmoved", TOTALS, WRONG_ROWS, _TO_AND_FRO),
    _without("rows_unmoved", FIRST_ROWS, WRONG_ROWS, _TO_AND_FRO),
    _without("acknowledged", AT_LEAST_ONCE, UNSENT, _ONE),
    _without("sent_once", AT_LEAST_ONCE, REPEATED, replace(_ONE, faults={"fail": 1})),
    _without("acknowledged", AT_MOST_ONCE, UNSENT, _ONE),
    _without("sent_last", AT_MOST_ONCE, REPEATED, _TWO),
    _without("exact_version", AT_MOST_ONCE, DUPLICATE, _RIVALS),
    _without("files_txn", AT_MOST_ONCE, DUPLICATE, replace(_RIVALS, may_halt=RIVALS | BROKEN)),
    _without("left_to_spark", AT_MOST_ONCE, UNFIT, replace(_ONE, faults={"alter": 1}, ways=BOTH)),
)
