"""What is explored of appends: each commit may be one of files, or Spark's."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.model.configurations import (
    BROKEN,
    CHANGING,
    CUT,
    FILES,
    KAFKA,
    OBJECTS,
    OPERATOR,
    RIVALS,
    TRIMMED,
    UNDONE,
)
from tests.faults.model.explore import Configuration
from tests.faults.model.judge import MIXED
from tests.faults.model.machine import AS_FILES, SPARK
from tests.faults.model.opening import BATCH_FAILED, COMMIT_FAILED, RETENTION_LOST

BOTH = (SPARK, AS_FILES)

BOTH_WAYS: Sequence[Configuration] = (
    Configuration(
        name="both ways, one at a time",
        about="file system, lock; kills, an orphaned JVM, failed writes, lost answers",
        guards=FILES,
        faults={"crash": 2, "fail": 1, "answer": 1, "orphan": 1},
        records=3,
        bad=(1,),
        drivers=1,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, altered",
        about="the table altered, so that it asks for Spark's writer or not; VACUUM; other writers",
        guards=FILES,
        faults={"alter": 3, "vacuum": 1, "fail": 1, "crash": 1},
        drivers=1,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, two at once",
        about="no lock: two drivers live, freeze and are killed; bad records",
        guards=OBJECTS,
        faults={"crash": 1},
        bad=(1,),
        may_halt=RIVALS,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, two, altered",
        about="two drivers live, and the table is altered",
        guards=OBJECTS,
        faults={"alter": 1, "crash": 1},
        records=1,
        may_halt=RIVALS,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, restore",
        about="RESTORE at any moment, which takes ALTER back, too, and is accepted",
        guards=FILES,
        faults={"restore": 1, "alter": 1},
        drivers=1,
        starts=OPERATOR,
        may_halt=UNDONE,
        may_end=BROKEN,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, clean-up",
        about="RESTORE, log clean-up and OPTIMIZE, at any moment; a kill",
        guards=FILES,
        faults={"restore": 1, "trim": 1, "optimize": 1, "crash": 1},
        records=1,
        drivers=1,
        starts=OPERATOR,
        may_halt=UNDONE | TRIMMED | {COMMIT_FAILED},
        may_end=TRIMMED | BROKEN,
        ways=BOTH,
    ),
    Configuration(
        name="both ways, retention",
        about="retention takes records whose files wait; losses recorded or halted for",
        guards=FILES,
        faults={"expire": 1, "optimize": 2, "crash": 1},
        drivers=1,
        bad=(1,),
        may_halt=frozenset({RETENTION_LOST, BATCH_FAILED}),
        may_end=frozenset({RETENTION_LOST}),
        ways=BOTH,
    ),
    Configuration(
        name="both ways, another topic",
        about="the topic created again while files wait, and that is accepted; a kill",
        guards=FILES,
        faults={"recreate": 1, "optimize": 1, "crash": 1},
        drivers=1,
        starts=CHANGING,
        may_halt=KAFKA,
        may_end=frozenset({MIXED}),
        ways=BOTH,
    ),
    Configuration(
        name="both ways, log cut",
        about="an unclean leader election while files wait, records after it; that is accepted",
        guards=FILES,
        faults={"cut": 1, "optimize": 2, "produce": 1},
        drivers=1,
        starts=CUT,
        may_halt=KAFKA,
        may_end=frozenset({MIXED}),
        ways=BOTH,
    ),
)
