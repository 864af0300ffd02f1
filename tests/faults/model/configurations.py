"""What is explored: the protocol under every fault, and the protocol with a guard removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.faults.model.explore import Configuration
from tests.faults.model.guards import Guards
from tests.faults.model.judge import MIXED
from tests.faults.model.opening import (
    ACCEPT,
    BATCH_FAILED,
    COMMIT_FAILED,
    DELETES,
    LEDGER_BROKEN,
    LEDGER_TRIMMED,
    LOG_TRUNCATED,
    OFFSET_GAP,
    OFFSET_OVERLAP,
    OFFSETS_TABLE_AHEAD,
    RECORD,
    RETENTION_LOST,
    SUPERSEDED,
    TABLE_UNDONE,
    TOPIC,
    TOPIC_RECREATED,
    TRUNCATION,
)

FILES = Guards(put_if_absent=False)
"""A local file system: no put-if-absent, so one process at a time holds an OS lock."""
OBJECTS = Guards(lock=False)
"""A store with put-if-absent: no lock, so two drivers of a pipeline may live at once."""

RIVALS = frozenset({SUPERSEDED, OFFSET_OVERLAP})
UNDONE = frozenset({TABLE_UNDONE, LEDGER_BROKEN})
BROKEN = frozenset({LEDGER_BROKEN})
TRIMMED = frozenset({LEDGER_TRIMMED})
KAFKA = frozenset({TOPIC_RECREATED, RETENTION_LOST, LOG_TRUNCATED, BATCH_FAILED})
OPERATOR: tuple[tuple[str, ...], ...] = ((), (ACCEPT,))
"""A run, or a ``resume`` that accepts what undid commits."""
ERASING: tuple[tuple[str, ...], ...] = ((), (ACCEPT,), (DELETES,))
"""The same, or ``accept-deletes``."""
CHANGING: tuple[tuple[str, ...], ...] = ((), (TOPIC,))
"""A run, or a ``resume`` that accepts another topic."""
CUT: tuple[tuple[str, ...], ...] = ((), (TRUNCATION,))
"""A run, or a ``resume`` that accepts that the log was cut."""
RECORDING: tuple[tuple[str, ...], ...] = ((), (RECORD,))
"""A run that halts on lost records, or one that may record the loss."""

PROTOCOL: Sequence[Configuration] = (
    Configuration(
        name="one at a time",
        about="file system, lock; kills, an orphaned JVM, failed writes, other writers",
        guards=FILES,
        faults={"crash": 2, "orphan": 1, "fail": 1, "answer": 1, "optimize": 1},
        records=3,
        bad=(1,),
    ),
    Configuration(
        name="two at once",
        about="object store, no lock: two drivers live, freeze and are killed; other writers",
        guards=OBJECTS,
        faults={"crash": 1, "fail": 1, "optimize": 1},
        bad=(1,),
        may_halt=RIVALS,
    ),
    Configuration(
        name="three records",
        about="two at once, longer, with kills only",
        guards=OBJECTS,
        faults={"crash": 1},
        records=3,
        may_halt=RIVALS,
    ),
    Configuration(
        name="first run",
        about="two drivers decide at once where `start: latest` is, while records arrive",
        guards=OBJECTS,
        faults={"produce": 2, "crash": 2},
        records=1,
        born=False,
        latest=True,
        may_halt=RIVALS,
    ),
    Configuration(
        name="restore",
        about="RESTORE at any moment, then `resume --accept restore`; kills, orphaned JVM",
        guards=FILES,
        faults={"restore": 1, "crash": 1, "orphan": 1},
        records=3,
        bad=(1,),
        starts=OPERATOR,
        may_halt=UNDONE,
    ),
    Configuration(
        name="restore, two at once",
        about="the same with two drivers alive, one of which may be the `resume`",
        guards=OBJECTS,
        faults={"restore": 1},
        starts=OPERATOR,
        may_halt=RIVALS | UNDONE | {OFFSET_GAP},
    ),
    Configuration(
        name="restore twice",
        about="to and fro, also between the steps of `resume`",
        guards=FILES,
        faults={"restore": 2},
        bad=(0,),
        starts=OPERATOR,
        may_halt=UNDONE,
        may_end=BROKEN,
    ),
    Configuration(
        name="restore, tried again",
        about="a `resume` whose write fails while one more RESTORE comes, tried again",
        guards=FILES,
        faults={"restore": 2, "fail": 1},
        drivers=1,
        starts=OPERATOR,
        may_halt=UNDONE,
        may_end=BROKEN,
    ),
    Configuration(
        name="restore and retention",
        about="RESTORE to before what Kafka still has; the loss recorded or halted for",
        guards=FILES,
        faults={"restore": 1, "expire": 1, "crash": 1},
        starts=((), (ACCEPT,), (RECORD,)),
        may_halt=UNDONE | {RETENTION_LOST, BATCH_FAILED},
    ),
    Configuration(
        name="emptied",
        about="TRUNCATE or REPLACE at any moment, and RESTORE; `resume --accept reset`",
        guards=FILES,
        faults={"empty": 1, "restore": 1},
        bad=(0,),
        starts=OPERATOR,
        may_halt=UNDONE,
        may_end=BROKEN,
    ),
    Configuration(
        name="made anew",
        about="the table dropped and made anew, or emptied; kills",
        guards=FILES,
        faults={"drop": 1, "empty": 1, "crash": 1},
        bad=(0,),
        starts=OPERATOR,
        may_halt=UNDONE | {OFFSETS_TABLE_AHEAD},
    ),
    Configuration(
        name="clean-up",
        about="the log trimmed at any moment, entries stamped anew, other writers, kills",
        guards=FILES,
        faults={"trim": 2, "heartbeat": 1, "optimize": 1, "crash": 1},
        bad=(1,),
        may_halt=TRIMMED | {COMMIT_FAILED},
        may_end=TRIMMED,
    ),
    Configuration(
        name="clean-up and restore",
        about="the log trimmed before or after a RESTORE that was answered",
        guards=FILES,
        faults={"trim": 1, "restore": 1, "optimize": 1},
        bad=(0,),
        starts=OPERATOR,
        may_halt=UNDONE | TRIMMED | {COMMIT_FAILED},
        may_end=TRIMMED | BROKEN,
    ),
    Configuration(
        name="all at the table",
        about="RESTORE, TRUNCATE, clean-up and a kill in any order, over a single record",
        guards=FILES,
        faults={"crash": 1, "restore": 1, "empty": 1, "trim": 1},
        records=1,
        starts=OPERATOR,
        may_halt=UNDONE | TRIMMED | {COMMIT_FAILED},
        may_end=TRIMMED | BROKEN,
    ),
    Configuration(
        name="all, two at once",
        about="RESTORE and clean-up under two living drivers, over a single record",
        guards=OBJECTS,
        faults={"restore": 1, "trim": 1},
        records=1,
        starts=OPERATOR,
        may_halt=RIVALS | UNDONE | TRIMMED | {OFFSET_GAP, COMMIT_FAILED},
        may_end=TRIMMED | BROKEN,
    ),
    Configuration(
        name="kafka",
        about="retention passes the position, topic recreated shorter or longer; losses recorded",
        guards=FILES,
        faults={"expire": 1, "recreate": 1, "crash": 1, "leap": 1},
        records=3,
        bad=(1,),
        starts=RECORDING,
        may_halt=KAFKA | {OFFSET_GAP},
        may_end=frozenset({TOPIC_RECREATED, MIXED}),
    ),
    Configuration(
        name="deleted rows",
        about="somebody deletes rows, an operator accepts that; RESTORE, kills at any moment",
        guards=FILES,
        faults={"delete": 1, "restore": 1, "crash": 1},
        bad=(0,),
        drivers=1,
        starts=ERASING,
        may_halt=UNDONE,
        may_end=BROKEN,
    ),
    Configuration(
        name="deleted rows, two at once",
        about="two drivers live, one of which may be the one that accepts; no lock",
        guards=OBJECTS,
        faults={"delete": 1, "crash": 1},
        records=1,
        starts=((), (DELETES,)),
        may_halt=RIVALS,
    ),
    Configuration(
        name="another topic",
        about="the topic created again, twice, and that is accepted; kills at any moment",
        guards=FILES,
        faults={"recreate": 2, "crash": 1},
        bad=(1,),
        drivers=1,
        starts=CHANGING,
        may_halt=KAFKA,
        may_end=frozenset({MIXED}),
    ),
    Configuration(
        name="another topic and restore",
        about="the same, and RESTORE to before and after it, also while it is being accepted",
        guards=FILES,
        faults={"recreate": 1, "restore": 1, "crash": 1},
        records=1,
        drivers=1,
        starts=(*CHANGING, (ACCEPT,)),
        may_halt=KAFKA | UNDONE | {OFFSETS_TABLE_AHEAD},
        may_end=BROKEN | {MIXED},
    ),
    Configuration(
        name="emptied, another topic",
        about="TRUNCATE and the topic created again, in any order, and RESTORE to before either",
        guards=FILES,
        faults={"recreate": 1, "empty": 1, "restore": 1, "crash": 1},
        records=1,
        drivers=1,
        starts=(*CHANGING, (ACCEPT,)),
        may_halt=KAFKA | UNDONE | {OFFSETS_TABLE_AHEAD},
        may_end=BROKEN | {MIXED},
    ),
    Configuration(
        name="another topic, rows gone",
        about="rows of both topics deleted on purpose, and that is accepted",
        guards=FILES,
        faults={"recreate": 1, "delete": 1, "crash": 1},
        drivers=1,
        starts=(*CHANGING, (DELETES,)),
        may_halt=KAFKA,
        may_end=frozenset({MIXED}),
    ),
    Configuration(
        name="another topic, two at once",
        about="the same with two drivers alive, one of which may be the one that accepts",
        guards=OBJECTS,
        faults={"recreate": 1, "crash": 1},
        records=1,
        starts=CHANGING,
        may_halt=KAFKA | RIVALS | {OFFSET_GAP},
        may_end=frozenset({MIXED}),
    ),
    Configuration(
        name="log cut",
        about="unclean leader elections, records after them or none, and that is accepted; kills",
        guards=FILES,
        faults={"cut": 2, "produce": 2, "crash": 1},
        bad=(1,),
        drivers=1,
        starts=CUT,
        may_halt=KAFKA,
        may_end=frozenset({MIXED}),
    ),
    Configuration(
        name="log cut and restore",
        about="the same, and RESTORE to before and after it, also while it is being accepted",
        guards=FILES,
        faults={"cut": 1, "restore": 1, "produce": 1},
        drivers=1,
        starts=(*CUT, (ACCEPT,)),
        may_halt=KAFKA | UNDONE | {OFFSETS_TABLE_AHEAD},
        may_end=BROKEN | {MIXED},
    ),
    Configuration(
        name="log cut, two at once",
        about="the same with two drivers alive, one of which may be the one that accepts",
        guards=OBJECTS,
        faults={"cut": 1, "produce": 1, "crash": 1},
        records=1,
        starts=CUT,
        may_halt=KAFKA | RIVALS | {OFFSET_GAP},
        may_end=frozenset({MIXED}),
    ),
    Configuration(
        name="open transaction",
        about="records of an undecided transaction at the end of the topic; kills",
        guards=FILES,
        faults={"settle": 1, "produce": 1, "crash": 2},
        undecided=1,
        bad=(0,),
    ),
    Configuration(
        name="backups",
        about="table folder or offsets table put back from a backup, while nothing runs; kills",
        guards=FILES,
        faults={"lose_tail": 1, "lose_offsets": 1, "crash": 2},
        bad=(1,),
        may_halt=frozenset({OFFSETS_TABLE_AHEAD}),
        may_end=frozenset({OFFSETS_TABLE_AHEAD}),
    ),
)


def small(configuration: Configuration) -> Configuration:
    """The same with a record less, and of its faults the first three, each at most once."""
    records = max(1, configuration.records - 1)
    return replace(
        configuration,
        records=records,
        faults=dict.fromkeys(list(configuration.faults)[:3], 1),
    )
