"""The protocol with a guard taken out, and the faults under which that does harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.model.both_ways import BOTH, EFFECTS
from tests.faults.model.configurations import (
    AHEAD,
    BROKEN,
    CLEANED_UP,
    KAFKA,
    LOCKED,
    LOG_CUT,
    LOG_CUT_RESTORED,
    ONE,
    OPERATOR,
    RESTORED,
    RESTORED_CLEANED_UP,
    RESTORED_TWICE,
    RIVALS,
    TOPIC_CHANGED,
    TOPIC_CHANGED_RESTORED,
    TWO,
    UNDONE,
)
from tests.faults.model.definition import UNFIT
from tests.faults.model.effect_judge import REPEATED, UNSENT, WRONG_ROWS
from tests.faults.model.effects import AT_LEAST_ONCE, AT_MOST_ONCE, FIRST_ROWS, TOTALS
from tests.faults.model.explore import DEAD_END, FALSE_ALARM, Configuration
from tests.faults.model.in_stores import ALONE, LAST_WINS
from tests.faults.model.judge import (
    DUPLICATE,
    LOST,
    MIXED,
    NAMED,
    PHANTOM,
    PROJECTION,
    UNEXPLAINED,
    UNSEEN,
    UNWRITTEN,
)
from tests.faults.model.machine import AS_FILES
from tests.faults.model.opening import COMMIT_FAILED, DELETES, OFFSET_GAP, RECORD


@dataclass(frozen=True)
class Removal:
    """A guard, or several, taken out; and the faults under which that does harm."""

    guards: tuple[str, ...]
    harm: str
    within: Configuration = field(repr=False)
    of: str = ""
    """What is harmed, where another removal of the same guards harms something else."""

    @property
    def name(self) -> str:
        return " + ".join(self.guards) + (f" ({self.of})" if self.of else "")

    def without(self) -> Configuration:
        """The configuration in which the harm is found."""
        missing = replace(self.within.guards, **dict.fromkeys(self.guards, False))
        return replace(self.within, name=f"without {self.name}", guards=missing)


def _without(
    guards: str,
    harm: str,
    within: Configuration,
    faults: Mapping[str, int] | None = None,
    of: str = "",
    **more: Any,
) -> Removal:
    within = within.under("", "", faults or {}, **more)
    return Removal(tuple(guards.split()), harm, within, of or EFFECTS.get(within.effect, ""))


_TWO_CHANGED = replace(TOPIC_CHANGED, drivers=2)
_EITHER, _EITHER_TWO = replace(ONE, ways=BOTH), replace(TWO, ways=BOTH)
_BAD: dict[str, Any] = {"bad": (0,)}
_BAD_AS_FILES: dict[str, Any] = {**_BAD, "ways": (AS_FILES,)}
_TO_AND_FRO = replace(RESTORED_TWICE, drivers=1)

REMOVALS: Sequence[Removal] = (
    _without("lock", UNWRITTEN, LOCKED, may_halt=RIVALS),
    _without("writer_holds_lock", UNWRITTEN, LOCKED, {"orphan": 1}, may_halt=RIVALS),
    _without("put_if_absent", UNWRITTEN, TWO),
    _without("txn", DUPLICATE, TWO),
    _without("ledger_sequence", FALSE_ALARM, LOCKED),
    _without("fresh_checkpoint", FALSE_ALARM, LOCKED),
    _without("read_back", UNWRITTEN, TWO),
    _without("audit", LOST, RESTORED, {"restore": 1}),
    _without("read_to_base", LOST, RESTORED, {"restore": 1}),
    _without("read_to_restored", DEAD_END, RESTORED, {"restore": 1}),
    _without("undo_aware", LOST, RESTORED, {"restore": 1}),
    _without(
        "resume_above_txn", DEAD_END, RESTORED, {"restore": 1}, may_halt=UNDONE | {COMMIT_FAILED}
    ),
    _without("accepts_as_planned", DUPLICATE, _TO_AND_FRO, {"restore": 2, "fail": 1}, records=1),
    _without(
        "contiguity",
        UNEXPLAINED,
        LOCKED,
        {"expire": 1, "leap": 1},
        may_halt=KAFKA | {OFFSET_GAP},
        starts=((), (RECORD,)),
    ),
    _without("topic_id", MIXED, LOCKED, {"recreate": 1}, may_halt=KAFKA, may_end=KAFKA | {MIXED}),
    _without("changes_found", DUPLICATE, _TWO_CHANGED, {"recreate": 1}),
    _without("changes_start_over", LOST, _TWO_CHANGED, {"recreate": 1}),
    _without(
        "changes_kept",
        MIXED,
        TOPIC_CHANGED_RESTORED,
        {"recreate": 1, "restore": 1},
        drivers=2,
        records=1,
    ),
    _without("topic_outlives_batch", MIXED, _TWO_CHANGED, {"recreate": 1}),
    _without(
        "deletes_stand",
        NAMED,
        RESTORED_TWICE,
        {"delete": 1, "restore": 1},
        starts=(*OPERATOR, (DELETES,)),
    ),
    _without("leader_epochs", LOST, LOG_CUT, {"cut": 1, "produce": 2}),
    _without("epochs_of_restored", LOST, LOG_CUT_RESTORED, {"cut": 1, "produce": 1, "restore": 1}),
    _without("discovery", LOST, LOCKED, {"produce": 2}, born=False, latest=True, records=1),
    _without("read_committed", PHANTOM, LOCKED, {"settle": 1}, undecided=1),
    _without("entry_always", FALSE_ALARM, LOCKED, **_BAD),
    _without("quarantine_ahead", LOST, LOCKED, {"crash": 1}, **_BAD),
    _without("quarantine_tagged", DUPLICATE, LOCKED, {"crash": 1}, **_BAD),
    _without("quarantine_standing", DUPLICATE, RESTORED, {"restore": 1}, **_BAD),
    _without("projection_txn", PROJECTION, TWO),
    _without("projection_caught_up", PROJECTION, LOCKED, {"crash": 1}),
    _without(
        "projection_ahead", PROJECTION, LOCKED, {"lose_tail": 1}, may_halt=AHEAD, may_end=AHEAD
    ),
    _without(
        "projection_compared", UNEXPLAINED, CLEANED_UP, {"trim": 1, "optimize": 1, "crash": 1}
    ),
    _without(
        "trouble_outlives_cleanup",
        LOST,
        RESTORED_CLEANED_UP,
        {"trim": 1, "optimize": 1, "restore": 1},
        records=1,
    ),
    _without("ledger_sequence fresh_checkpoint read_back", UNWRITTEN, ONE, {"lose_checkpoint": 1}),
    # Where rows land as files, or through Spark.
    _without("exact_version", DUPLICATE, _EITHER_TWO),
    _without("exact_version", UNFIT, _EITHER, {"alter": 1}, of="one at a time"),
    _without("commit_lock", UNWRITTEN, _EITHER, {"optimize": 1}),
    _without("files_txn", DUPLICATE, _EITHER_TWO, may_halt=RIVALS | BROKEN),
    _without("left_to_spark", UNFIT, _EITHER, {"alter": 1}),
    _without("looked_at", UNSEEN, TOPIC_CHANGED, {"recreate": 1}, ways=BOTH),
    _without("read_again", LOST, LOG_CUT, {"cut": 1, "produce": 1}, ways=BOTH),
    _without("waits_for_range", DUPLICATE, _EITHER, {"answer": 1}),
    _without("waits_for_definition", UNFIT, _EITHER, {"alter": 1}),
    _without("waits_whole", LOST, _EITHER, {"optimize": 1, "vacuum": 1}),
    _without("bad_again", LOST, _EITHER, {"optimize": 1}, **_BAD),
    _without("quarantine_ahead", LOST, LOCKED, {"crash": 1}, of="as files", **_BAD_AS_FILES),
    _without("quarantine_tagged", DUPLICATE, ONE, {"optimize": 1}, of="as files", **_BAD_AS_FILES),
    # Where a commit is a put into an object store.
    _without("trial", UNWRITTEN, LAST_WINS),
    _without("kept_unless_refused", LOST, ALONE, {"time_out": 1}),
    _without("kept_unless_refused", LOST, ALONE, {"conflict": 1}, of="409"),
    _without("own_tries", FALSE_ALARM, ALONE, {"time_out": 1}),
    # Where batches keep totals or first rows, or send their records.
    _without("txn", WRONG_ROWS, TWO, effect=TOTALS),
    _without("fresh_checkpoint contiguity", WRONG_ROWS, LOCKED, {"crash": 1}, effect=TOTALS),
    _without("rows_unmoved", WRONG_ROWS, _TO_AND_FRO, {"restore": 2}, effect=TOTALS),
    _without("rows_unmoved", WRONG_ROWS, _TO_AND_FRO, {"restore": 2}, effect=FIRST_ROWS),
    _without("exact_version", WRONG_ROWS, _EITHER_TWO, effect=TOTALS),
    _without("acknowledged", UNSENT, ONE, {"crash": 1}, effect=AT_LEAST_ONCE),
    _without("sent_once", REPEATED, ONE, {"fail": 1}, effect=AT_LEAST_ONCE),
    _without("acknowledged", UNSENT, ONE, {"crash": 1}, effect=AT_MOST_ONCE),
    _without("sent_last", REPEATED, TWO, effect=AT_MOST_ONCE),
    _without("exact_version", DUPLICATE, _EITHER_TWO, effect=AT_MOST_ONCE, records=1),
    _without(
        "files_txn",
        DUPLICATE,
        _EITHER_TWO,
        effect=AT_MOST_ONCE,
        records=1,
        may_halt=RIVALS | BROKEN,
    ),
    _without("left_to_spark", UNFIT, _EITHER, {"alter": 1}, effect=AT_MOST_ONCE),
)
