"""What is explored: the protocol under every fault. A row for each configuration."""

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
AHEAD = frozenset({OFFSETS_TABLE_AHEAD})
KAFKA = frozenset({TOPIC_RECREATED, RETENTION_LOST, LOG_TRUNCATED, BATCH_FAILED})

# How a driver may be started: each is a run, or a command that accepts something.
OPERATOR = ((), (ACCEPT,))
CHANGING = ((), (TOPIC,))
CUT = ((), (TRUNCATION,))

# What others are made of. On a file system one driver at a time holds the lock.
LOCKED = Configuration("", "", FILES)
TWO = Configuration("", "", OBJECTS, may_halt=RIVALS)
ONE = replace(LOCKED, drivers=1)
RESTORED = replace(LOCKED, starts=OPERATOR, may_halt=UNDONE)
RESTORED_TWICE = replace(RESTORED, may_end=BROKEN)
CLEANED_UP = replace(LOCKED, may_halt=TRIMMED | {COMMIT_FAILED}, may_end=TRIMMED)
RESTORED_CLEANED_UP = replace(
    RESTORED, may_halt=UNDONE | TRIMMED | {COMMIT_FAILED}, may_end=TRIMMED | BROKEN
)
TOPIC_CHANGED = replace(ONE, starts=CHANGING, may_halt=KAFKA, may_end=frozenset({MIXED}))
LOG_CUT = replace(TOPIC_CHANGED, starts=CUT)
TOPIC_CHANGED_RESTORED = replace(
    TOPIC_CHANGED,
    starts=(*CHANGING, (ACCEPT,)),
    may_halt=KAFKA | UNDONE | AHEAD,
    may_end=BROKEN | {MIXED},
)
LOG_CUT_RESTORED = replace(TOPIC_CHANGED_RESTORED, starts=(*CUT, (ACCEPT,)))
TOPIC_CHANGED_TWO = replace(TOPIC_CHANGED, guards=OBJECTS, drivers=2, records=1)
TOPIC_CHANGED_TWO = replace(TOPIC_CHANGED_TWO, may_halt=KAFKA | RIVALS | {OFFSET_GAP})

PROTOCOL: Sequence[Configuration] = (
    LOCKED.under(
        "one at a time",
        "file system, lock; kills, an orphaned JVM, failed writes, other writers",
        {"crash": 2, "orphan": 1, "fail": 1, "answer": 1, "optimize": 1},
        records=3,
        bad=(1,),
    ),
    TWO.under(
        "two at once",
        "object store, no lock: two drivers live, freeze and are killed; other writers",
        {"crash": 1, "fail": 1, "optimize": 1},
        bad=(1,),
    ),
    TWO.under("three records", "two at once, longer, with kills only", {"crash": 1}, records=3),
    TWO.under(
        "first run",
        "two drivers decide at once where `start: latest` is, while records arrive",
        {"produce": 2, "crash": 2},
        records=1,
        born=False,
        latest=True,
    ),
    RESTORED.under(
        "restore",
        "RESTORE at any moment, then `resume --accept restore`; kills, orphaned JVM",
        {"restore": 1, "crash": 1, "orphan": 1},
        records=3,
        bad=(1,),
    ),
    RESTORED.under(
        "restore, two at once",
        "the same with two drivers alive, one of which may be the `resume`",
        {"restore": 1},
        guards=OBJECTS,
        may_halt=RIVALS | UNDONE | {OFFSET_GAP},
    ),
    RESTORED_TWICE.under(
        "restore twice",
        "to and fro, also between the steps of `resume`",
        {"restore": 2},
        bad=(0,),
    ),
    RESTORED_TWICE.under(
        "restore, tried again",
        "a `resume` whose write fails while one more RESTORE comes, tried again",
        {"restore": 2, "fail": 1},
        drivers=1,
    ),
    RESTORED.under(
        "restore and retention",
        "RESTORE to before what Kafka still has; the loss recorded or halted for",
        {"restore": 1, "expire": 1, "crash": 1},
        starts=(*OPERATOR, (RECORD,)),
        may_halt=UNDONE | {RETENTION_LOST, BATCH_FAILED},
    ),
    RESTORED_TWICE.under(
        "emptied",
        "TRUNCATE or REPLACE at any moment, and RESTORE; `resume --accept reset`",
        {"empty": 1, "restore": 1},
        bad=(0,),
    ),
    RESTORED.under(
        "made anew",
        "the table dropped and made anew, or emptied; kills",
        {"drop": 1, "empty": 1, "crash": 1},
        bad=(0,),
        may_halt=UNDONE | AHEAD,
    ),
    CLEANED_UP.under(
        "clean-up",
        "the log trimmed at any moment, entries stamped anew, other writers, kills",
        {"trim": 2, "heartbeat": 1, "optimize": 1, "crash": 1},
        bad=(1,),
    ),
    RESTORED_CLEANED_UP.under(
        "clean-up and restore",
        "the log trimmed before or after a RESTORE that was answered",
        {"trim": 1, "restore": 1, "optimize": 1},
        bad=(0,),
    ),
    RESTORED_CLEANED_UP.under(
        "all at the table",
        "RESTORE, TRUNCATE, clean-up and a kill in any order, over a single record",
        {"crash": 1, "restore": 1, "empty": 1, "trim": 1},
        records=1,
    ),
    RESTORED_CLEANED_UP.under(
        "all, two at once",
        "RESTORE and clean-up under two living drivers, over a single record",
        {"restore": 1, "trim": 1},
        guards=OBJECTS,
        records=1,
        may_halt=RIVALS | UNDONE | TRIMMED | {OFFSET_GAP, COMMIT_FAILED},
    ),
    LOCKED.under(
        "kafka",
        "retention passes the position, topic recreated shorter or longer; losses recorded",
        {"expire": 1, "recreate": 1, "crash": 1, "leap": 1},
        records=3,
        bad=(1,),
        starts=((), (RECORD,)),
        may_halt=KAFKA | {OFFSET_GAP},
        may_end=frozenset({TOPIC_RECREATED, MIXED}),
    ),
    RESTORED_TWICE.under(
        "deleted rows",
        "somebody deletes rows, an operator accepts that; RESTORE, kills at any moment",
        {"delete": 1, "restore": 1, "crash": 1},
        bad=(0,),
        drivers=1,
        starts=(*OPERATOR, (DELETES,)),
    ),
    TWO.under(
        "deleted rows, two at once",
        "two drivers live, one of which may be the one that accepts; no lock",
        {"delete": 1, "crash": 1},
        records=1,
        starts=((), (DELETES,)),
    ),
    TOPIC_CHANGED.under(
        "another topic",
        "the topic created again, twice, and that is accepted; kills at any moment",
        {"recreate": 2, "crash": 1},
        bad=(1,),
    ),
    TOPIC_CHANGED_RESTORED.under(
        "another topic and restore",
        "the same, and RESTORE to before and after it, also while it is being accepted",
        {"recreate": 1, "restore": 1, "crash": 1},
        records=1,
    ),
    TOPIC_CHANGED_RESTORED.under(
        "emptied, another topic",
        "TRUNCATE and the topic created again, in any order, and RESTORE to before either",
        {"recreate": 1, "empty": 1, "restore": 1, "crash": 1},
        records=1,
    ),
    TOPIC_CHANGED.under(
        "another topic, rows gone",
        "rows of both topics deleted on purpose, and that is accepted",
        {"recreate": 1, "delete": 1, "crash": 1},
        starts=(*CHANGING, (DELETES,)),
    ),
    TOPIC_CHANGED_TWO.under(
        "another topic, two at once",
        "the same with two drivers alive, one of which may be the one that accepts",
        {"recreate": 1, "crash": 1},
    ),
    LOG_CUT.under(
        "log cut",
        "unclean leader elections, records after them or none, and that is accepted; kills",
        {"cut": 2, "produce": 2, "crash": 1},
        bad=(1,),
    ),
    LOG_CUT_RESTORED.under(
        "log cut and restore",
        "the same, and RESTORE to before and after it, also while it is being accepted",
        {"cut": 1, "restore": 1, "produce": 1},
    ),
    TOPIC_CHANGED_TWO.under(
        "log cut, two at once",
        "the same with two drivers alive, one of which may be the one that accepts",
        {"cut": 1, "produce": 1, "crash": 1},
        starts=CUT,
    ),
    LOCKED.under(
        "open transaction",
        "records of an undecided transaction at the end of the topic; kills",
        {"settle": 1, "produce": 1, "crash": 2},
        undecided=1,
        bad=(0,),
    ),
    LOCKED.under(
        "backups",
        "table folder or offsets table put back from a backup, while nothing runs; kills",
        {"lose_tail": 1, "lose_offsets": 1, "crash": 2},
        bad=(1,),
        may_halt=AHEAD,
        may_end=AHEAD,
    ),
)


def small(configuration: Configuration) -> Configuration:
    """The same with a record less, and of its faults the first three, each at most once."""
    records = max(1, configuration.records - 1)
    faults = dict.fromkeys(list(configuration.faults)[:3], 1)
    return replace(configuration, records=records, faults=faults)
