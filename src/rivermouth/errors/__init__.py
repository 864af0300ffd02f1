"""Everything that rivermouth raises, as one tree.

    RivermouthError
    ├── ConfigError            RM100  exit 2  the configuration is refused, whole
    ├── SetupError             RM2xx  exit 2  this machine cannot run it yet
    │   ├── JavaMissing        RM201          no Java 17 or 21
    │   ├── JavaUnsupported    RM202          a Java of another version
    │   ├── JarsUnreachable    RM203          the jars could not be downloaded
    │   ├── JarMismatch        RM204          a jar is not the one that was locked
    │   ├── DiskFull           RM205          no room where something must be written
    │   ├── MissingPackage     RM206          a Python package is needed here
    │   ├── SecretUnavailable  RM207          a secret cannot be read
    │   ├── UpsertUnsupported  RM208          the engine does not replace rows by key
    │   ├── SinkUnsupported    RM209          the platform cannot send as configured
    │   └── WorkersUnfit       RM210          Spark's Python workers lack a package, or differ
    ├── SourceError            RM3xx  exit 1  Kafka did not answer as it should
    │   ├── KafkaUnreachable   RM301          no broker answers, or not in time
    │   ├── TopicMissing       RM302          a configured topic does not exist
    │   ├── KafkaRefused       RM303          the broker answered with an error
    │   └── KafkaUnsettled     RM304          the cluster cannot answer yet: a leader is elected
    ├── Halt                   RM4xx  exit 3  a guard stopped the pipeline before it wrote
    │   ├── OffsetGap          RM401          a range starts after the position
    │   ├── OffsetOverlap      RM402          a range starts before the position
    │   ├── Superseded         RM403          another driver holds our sequence
    │   ├── TopicRecreated     RM404          the topic has another id than recorded
    │   ├── OtherCluster       RM405          the cluster has another id than recorded
    │   ├── RetentionLost      RM406          Kafka deleted records that were not read
    │   ├── PartitionGone      RM407          a recorded partition no longer exists
    │   ├── IdentityChanged    RM408          keys, mode or order of the pipeline changed
    │   ├── TableReplaced      RM409          the table has another id than recorded
    │   ├── LedgerBroken       RM410          the entries in the log do not form a chain
    │   ├── TableUndone        RM411          RESTORE, REPLACE or TRUNCATE undid commits
    │   ├── LedgerTrimmed      RM412          log clean-up removed the entries
    │   ├── TableLocked        RM413          another process writes this table
    │   ├── SchemaDiffers      RM414          the table has other columns than configured
    │   ├── OffsetsTableAhead  RM415          the offsets table knows more than the log
    │   ├── LogTruncated       RM416          Kafka's log ends before the position
    │   └── StartUnknown       RM417          source.start names no offset of a partition
    ├── CommitError            RM5xx  exit 1  a commit did not come through
    │   ├── CommitUnknown      RM501          the log could not be read back
    │   ├── CommitFailed       RM502          Delta refused or lost the write
    │   ├── BatchFailed        RM503          Spark could not read or write the batch
    │   ├── CommitConflict     RM504          commits of others were in the way, every time
    │   ├── ProjectionFailed   RM505          the commit stands, the offsets table lacks it
    │   ├── TransformFailed    RM506          the pipeline's own code failed, or broke a rule
    │   ├── NotSent            RM507          a sink did not take a batch; no commit
    │   └── NotDelivered       RM508          the commit stands, its records were not all sent
    ├── Refusal                RM7xx  exit 2  asked for what cannot be done
    │   ├── QueryRefused       RM701          a SQL statement that cannot be answered
    │   ├── ResumeRefused      RM702          nothing to accept, or something else
    │   ├── ScaffoldRefused    RM703          no project can be written there, or of that
    │   ├── RangesRefused      RM704          offset ranges that nobody can read, or tell
    │   └── ReplayRefused      RM705          records that may not be applied once more there
    ├── StoreError             RM8xx  exit 1  what a table's store holds could not be read
    │   ├── LogUnreadable      RM801          the log of a table could not be read
    │   └── OffsetsUnreadable  RM802          the offsets table could not be read
    └── Unexpected             RM900  exit 1  an error that nobody foresaw

Bad *records* never raise: they go to quarantine under a code RM6xx (``config.registry``). Each
error says what was expected and found, where, and what to do; docs/errors.md explains each code.
"""

from __future__ import annotations

from rivermouth.errors.passing import Passing, of_python, of_text, of_the_disk
from rivermouth.errors.tree import (
    BatchFailed,
    CommitConflict,
    CommitError,
    CommitFailed,
    CommitUnknown,
    ConfigError,
    DiskFull,
    Halt,
    IdentityChanged,
    JarMismatch,
    JarsUnreachable,
    JavaMissing,
    JavaUnsupported,
    KafkaRefused,
    KafkaUnreachable,
    KafkaUnsettled,
    LedgerBroken,
    LedgerTrimmed,
    LogTruncated,
    LogUnreadable,
    MissingPackage,
    NotDelivered,
    NotSent,
    OffsetGap,
    OffsetOverlap,
    OffsetsTableAhead,
    OffsetsUnreadable,
    OtherCluster,
    PartitionGone,
    ProjectionFailed,
    QueryRefused,
    RangesRefused,
    Refusal,
    ReplayRefused,
    ResumeRefused,
    RetentionLost,
    RivermouthError,
    ScaffoldRefused,
    SchemaDiffers,
    SecretUnavailable,
    SetupError,
    SinkUnsupported,
    SourceError,
    StartUnknown,
    StoreError,
    Superseded,
    TableLocked,
    TableReplaced,
    TableUndone,
    TopicMissing,
    TopicRecreated,
    TransformFailed,
    Unexpected,
    UpsertUnsupported,
    WorkersUnfit,
    as_ours,
)

__all__ = [
    "BatchFailed",
    "CommitConflict",
    "CommitError",
    "CommitFailed",
    "CommitUnknown",
    "ConfigError",
    "DiskFull",
    "Halt",
    "IdentityChanged",
    "JarMismatch",
    "JarsUnreachable",
    "JavaMissing",
    "JavaUnsupported",
    "KafkaRefused",
    "KafkaUnreachable",
    "KafkaUnsettled",
    "LedgerBroken",
    "LedgerTrimmed",
    "LogTruncated",
    "LogUnreadable",
    "MissingPackage",
    "NotDelivered",
    "NotSent",
    "OffsetGap",
    "OffsetOverlap",
    "OffsetsTableAhead",
    "OffsetsUnreadable",
    "OtherCluster",
    "PartitionGone",
    "Passing",
    "ProjectionFailed",
    "QueryRefused",
    "RangesRefused",
    "Refusal",
    "ReplayRefused",
    "ResumeRefused",
    "RetentionLost",
    "RivermouthError",
    "ScaffoldRefused",
    "SchemaDiffers",
    "SecretUnavailable",
    "SetupError",
    "SinkUnsupported",
    "SourceError",
    "StartUnknown",
    "StoreError",
    "Superseded",
    "TableLocked",
    "TableReplaced",
    "TableUndone",
    "TopicMissing",
    "TopicRecreated",
    "TransformFailed",
    "Unexpected",
    "UpsertUnsupported",
    "WorkersUnfit",
    "as_ours",
    "of_python",
    "of_text",
    "of_the_disk",
]
