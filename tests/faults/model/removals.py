"""The protocol with a guard taken out, and the faults under which that does harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.faults.model.configurations import (
    BROKEN,
    CHANGING,
    CUT,
    ERASING,
    FILES,
    KAFKA,
    OBJECTS,
    OPERATOR,
    RECORDING,
    RIVALS,
    TRIMMED,
    UNDONE,
)
from tests.faults.model.explore import DEAD_END, FALSE_ALARM, Configuration
from tests.faults.model.judge import (
    DUPLICATE,
    LOST,
    MIXED,
    NAMED,
    PHANTOM,
    PROJECTION,
    UNEXPLAINED,
    UNWRITTEN,
)
from tests.faults.model.opening import ACCEPT, COMMIT_FAILED, OFFSET_GAP, OFFSETS_TABLE_AHEAD


@dataclass(frozen=True)
class Removal:
    """A guard, or several, taken out; and the faults under which that does harm."""

    guards: tuple[str, ...]
    harm: str
    within: Configuration = field(repr=False)
    of: str = ""
    """The effect whose records come to harm, where it is not that of each record being a row."""

    @property
    def name(self) -> str:
        return " + ".join(self.guards) + (f" ({self.of})" if self.of else "")

    def without(self) -> Configuration:
        """The configuration in which the harm is found."""
        missing = replace(self.within.guards, **dict.fromkeys(self.guards, False))
        return replace(self.within, name=f"without {self.name}", guards=missing)


def _files(**faults: int) -> Configuration:
    return Configuration("", "", FILES, faults)


def _objects(**faults: int) -> Configuration:
    return Configuration("", "", OBJECTS, faults, may_halt=RIVALS)


def _undone(**faults: int) -> Configuration:
    return replace(_files(**faults), starts=OPERATOR, may_halt=UNDONE)


def _changing(**faults: int) -> Configuration:
    within = replace(_files(**faults), starts=CHANGING, may_halt=KAFKA)
    return replace(within, may_end=frozenset({MIXED}))


def _cut(**faults: int) -> Configuration:
    within = replace(_files(cut=1, **faults), starts=CUT, may_halt=KAFKA)
    return replace(within, drivers=1, may_end=frozenset({MIXED}))


def _bad(offset: int, within: Configuration) -> Configuration:
    return replace(within, bad=(offset,))


REMOVALS: Sequence[Removal] = (
    Removal(("lock",), UNWRITTEN, replace(_files(), may_halt=RIVALS)),
    Removal(("writer_holds_lock",), UNWRITTEN, replace(_files(orphan=1), may_halt=RIVALS)),
    Removal(("put_if_absent",), UNWRITTEN, _objects()),
    Removal(("txn",), DUPLICATE, _objects()),
    Removal(("ledger_sequence",), FALSE_ALARM, _files()),
    Removal(("fresh_checkpoint",), FALSE_ALARM, _files()),
    Removal(("read_back",), UNWRITTEN, _objects()),
    Removal(("audit",), LOST, _undone(restore=1)),
    Removal(("read_to_base",), LOST, _undone(restore=1)),
    Removal(("read_to_restored",), DEAD_END, _undone(restore=1)),
    Removal(("undo_aware",), LOST, _undone(restore=1)),
    Removal(
        ("resume_above_txn",),
        DEAD_END,
        replace(_undone(restore=1), may_halt=UNDONE | {COMMIT_FAILED}),
    ),
    Removal(
        ("accepts_as_planned",),
        DUPLICATE,
        replace(_undone(restore=2, fail=1), drivers=1, records=1, may_end=BROKEN),
    ),
    Removal(
        ("contiguity",),
        UNEXPLAINED,
        replace(_files(expire=1, leap=1), may_halt=KAFKA | {OFFSET_GAP}, starts=RECORDING),
    ),
    Removal(
        ("topic_id",),
        MIXED,
        replace(_files(recreate=1), may_halt=KAFKA, may_end=KAFKA | {MIXED}),
    ),
    Removal(
        ("changes_found",),
        DUPLICATE,
        _changing(recreate=1),
    ),
    Removal(
        ("changes_start_over",),
        LOST,
        _changing(recreate=1),
    ),
    Removal(
        ("changes_kept",),
        MIXED,
        replace(
            _changing(recreate=1, restore=1),
            may_halt=KAFKA | UNDONE | {OFFSETS_TABLE_AHEAD},
            may_end=BROKEN | {MIXED},
            starts=(*CHANGING, (ACCEPT,)),
            records=1,
        ),
    ),
    Removal(("topic_outlives_batch",), MIXED, _changing(recreate=1)),
    Removal(
        ("deletes_stand",),
        NAMED,
        replace(_undone(delete=1, restore=1), starts=ERASING, may_end=BROKEN),
    ),
    Removal(("leader_epochs",), LOST, _cut(produce=2)),
    Removal(
        ("epochs_of_restored",),
        LOST,
        replace(
            _cut(produce=1, restore=1),
            may_halt=KAFKA | UNDONE | {OFFSETS_TABLE_AHEAD},
            may_end=BROKEN | {MIXED},
            starts=(*CUT, (ACCEPT,)),
        ),
    ),
    Removal(("discovery",), LOST, replace(_files(produce=2), born=False, latest=True, records=1)),
    Removal(("read_committed",), PHANTOM, replace(_files(settle=1), undecided=1)),
    Removal(("entry_always",), FALSE_ALARM, _bad(0, _files())),
    Removal(("quarantine_ahead",), LOST, _bad(0, _files(crash=1))),
    Removal(("quarantine_tagged",), DUPLICATE, _bad(0, _files(crash=1))),
    Removal(("quarantine_standing",), DUPLICATE, _bad(0, _undone(restore=1))),
    Removal(("projection_txn",), PROJECTION, _objects()),
    Removal(("projection_caught_up",), PROJECTION, _files(crash=1)),
    Removal(
        ("projection_ahead",),
        PROJECTION,
        replace(
            _files(lose_tail=1),
            may_halt=frozenset({OFFSETS_TABLE_AHEAD}),
            may_end=frozenset({OFFSETS_TABLE_AHEAD}),
        ),
    ),
    Removal(
        ("projection_compared",),
        UNEXPLAINED,
        replace(
            _files(trim=1, optimize=1, crash=1), may_halt=TRIMMED | {COMMIT_FAILED}, may_end=TRIMMED
        ),
    ),
    Removal(
        ("trouble_outlives_cleanup",),
        LOST,
        replace(
            _undone(trim=1, optimize=1, restore=1),
            may_halt=UNDONE | TRIMMED | {COMMIT_FAILED},
            may_end=TRIMMED | BROKEN,
            records=1,
        ),
    ),
    Removal(
        ("ledger_sequence", "fresh_checkpoint", "read_back"),
        UNWRITTEN,
        replace(_files(lose_checkpoint=1), drivers=1),
    ),
)
