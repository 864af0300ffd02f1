"""Guards that stopped a pipeline before it wrote; drawn in ``rivermouth.errors``."""

from __future__ import annotations

from rivermouth.errors.failures import RivermouthError


class Halt(RivermouthError):
    code = "RM400"
    exit_code = 3


class OffsetGap(Halt):
    code = "RM401"
    default_remedy = "Run again; if it comes back, compare 'status' with the topic"


class OffsetOverlap(Halt):
    code = "RM402"
    default_remedy = "Another driver moved the table; stop it, then run again"


class Superseded(Halt):
    code = "RM403"
    default_remedy = "Another driver of this pipeline is running; let one run alone"


class TopicRecreated(Halt):
    code = "RM404"
    default_remedy = (
        "Its offsets mean other records now; 'resume --accept topic' reads the new topic"
    )


class OtherCluster(Halt):
    code = "RM405"
    default_remedy = (
        "Point kafka.bootstrap.servers back; 'resume --accept cluster' if the topics moved"
    )


class RetentionLost(Halt):
    code = "RM406"
    default_remedy = "The records are gone from Kafka; restore them, or say on_data_loss: record"


class PartitionGone(Halt):
    code = "RM407"
    default_remedy = "Check topic and cluster; 'resume --accept partitions' if it is gone for good"


class IdentityChanged(Halt):
    code = "RM408"
    default_remedy = "Put the setting back, or ingest under a new pipeline name and table"


class TableReplaced(Halt):
    code = "RM409"
    default_remedy = "Put the table back, or ingest under a new pipeline name"


class LedgerBroken(Halt):
    code = "RM410"
    default_remedy = "Run 'rivermouth verify' to see what the table holds before anything else"


class TableUndone(Halt):
    code = "RM411"
    default_remedy = "RESTORE the table to the version before that operation, then run again"


class LedgerTrimmed(Halt):
    code = "RM412"
    default_remedy = "Restore the offsets table, or ingest into a new table"


class TableLocked(Halt):
    code = "RM413"
    default_remedy = "Wait for the other process, or stop it"


class SchemaDiffers(Halt):
    code = "RM414"
    default_remedy = "Align 'schema' with the table, or ALTER the table"


class OffsetsTableAhead(Halt):
    code = "RM415"
    default_remedy = "Was the table dropped, moved or restored? Put it back, or use a new name"


class LogTruncated(Halt):
    code = "RM416"
    default_remedy = "Check the broker; 'resume --accept truncation' goes on where the log was cut"


class StartUnknown(Halt):
    code = "RM417"
    default_remedy = "Name the partitions that exist in source.start, and offsets that they have"
