"""Errors that come through Spark: the root of their causes, their code, and whether they pass."""

from __future__ import annotations

from dataclasses import dataclass
from ssl import SSLCertVerificationError

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException, PySparkImportError, PySparkTypeError

from rivermouth.errors import Passing
from rivermouth.spark.errors import is_conflict, reason, translate

pytestmark = pytest.mark.unit

NO, MADE, MAYBE, YES = (
    Passing.NO,
    Passing.IF_A_BATCH_WORKED,
    Passing.IF_IT_WORKED,
    Passing.YES,
)
FRAMES = "\tat org.apache.spark.Some$.place(Some.scala:1)\n\tat java.base/java.lang.Thread.run\n"
JOB = "org.apache.spark.SparkException: Job aborted due to stage failure: "
LOST = "Task 0 in stage 8.0 failed 1 times, most recent failure: Lost task 0.0 in stage 8.0 (TID 9)"
KAFKA = "org.apache.kafka.common.errors"
DELTA = "io.delta.exceptions"


@dataclass(frozen=True)
class Example:
    """What a session raised: its text, and what is to come of it."""

    text: str
    code: str
    passes: Passing
    found: str


def thrown(*links: str) -> str:
    """A stack trace as the JVM prints it: the first link, then what caused it."""
    return FRAMES.join([links[0] + "\n", *(f"Caused by: {each}\n" for each in links[1:])]) + FRAMES


def called(method: str, *links: str) -> str:
    """What py4j says of a call that threw."""
    return f"An error occurred while calling o469.{method}.\n: {thrown(*links)}"


WRITING = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows."
STREAM = (
    "[STREAM_FAILED] Query [id = 1b, runId = 2c] terminated with exception: {} SQLSTATE: XXKST\n"
    "=== Streaming Query ===\nIdentifier: [id = 1b]\n"
)

EXAMPLES = {
    "a lost executor takes the folded batch with it": Example(
        called(
            "localCheckpoint",
            f"{JOB}{LOST} (10.0.0.7 executor 3): ExecutorLostFailure (executor 3 exited)",
        ),
        "RM503",
        MAYBE,
        "ExecutorLostFailure (executor 3 exited)",
    ),
    "a block that went with it": Example(
        called(
            "localCheckpoint",
            f"{JOB}{LOST} (10.0.0.7 executor 3): {WRITING}",
            WRITING,
            "org.apache.spark.SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint "
            "block rdd_9_0 not found! SQLSTATE: 56000",
        ),
        "RM503",
        MAYBE,
        "[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_9_0 not found! SQLSTATE: 56000",
    ),
    "a task that no broker answers": Example(
        called("save", f"{JOB}{LOST} (host executor driver): {KAFKA}.TimeoutException: 60 s over"),
        "RM301",
        YES,
        "TimeoutException: 60 s over",
    ),
    "a plan that no broker answers": Example(
        STREAM.format(f"{KAFKA}.TimeoutException: Timed out waiting for a node. Call: fetch"),
        "RM301",
        YES,
        "TimeoutException: Timed out waiting for a node. Call: fetch SQLSTATE: XXKST",
    ),
    "no leader, on Databricks": Example(
        thrown(
            "java.util.concurrent.ExecutionException: kafkashaded.org.apache.kafka.common.errors"
            ".NotLeaderOrFollowerException: not the leader",
            f"kafkashaded.{KAFKA}.NotLeaderOrFollowerException: not the leader",
        ),
        "RM304",
        YES,
        "NotLeaderOrFollowerException: not the leader",
    ),
    "too few replicas in sync for what is sent": Example(
        called(
            "save",
            f"{JOB}{LOST} (host executor driver): {KAFKA}.NotEnoughReplicasException: Messages are"
            " rejected since there are fewer in-sync replicas than required.",
        ),
        "RM304",
        YES,
        "NotEnoughReplicasException: Messages are rejected since there are fewer in-sync replicas"
        " than required.",
    ),
    "no right to read": Example(
        thrown(
            f"{JOB}{LOST} (h executor driver): {KAFKA}.TopicAuthorizationException: Not authorized",
            f"{KAFKA}.TopicAuthorizationException: Not authorized to access topics: [t]",
        ),
        "RM303",
        NO,
        "TopicAuthorizationException: Not authorized to access topics: [t]",
    ),
    "a login that is unknown, though the question timed out": Example(
        thrown(
            f"{KAFKA}.TimeoutException: Timed out",
            f"{KAFKA}.SaslAuthenticationException: Invalid username or password",
        ),
        "RM303",
        NO,
        "SaslAuthenticationException: Invalid username or password",
    ),
    "a topic that is gone": Example(
        thrown(f"{KAFKA}.UnknownTopicOrPartitionException: This server does not host this"),
        "RM302",
        MAYBE,
        "UnknownTopicOrPartitionException: This server does not host this",
    ),
    "an option that the client refuses": Example(
        thrown(
            "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient",
            "org.apache.kafka.common.config.ConfigException: Invalid value x for y",
        ),
        "RM303",
        NO,
        "ConfigException: Invalid value x for y",
    ),
    "a name that cannot be resolved now": Example(
        thrown(
            "org.apache.kafka.common.KafkaException: Failed to create new KafkaAdminClient",
            "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given",
        ),
        "RM301",
        YES,
        "ConfigException: No resolvable bootstrap urls given",
    ),
    "an error of Kafka's without a class of its own": Example(
        thrown(f"{KAFKA}.UnknownServerException: unexpected error"),
        "RM503",
        MAYBE,
        "UnknownServerException: unexpected error",
    ),
    "offsets that are gone": Example(
        STREAM.format("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Could not read 1-2"),
        "RM406",
        NO,
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Could not read 1-2 SQLSTATE: XXKST",
    ),
    "offsets that an executor did not find": Example(
        called(
            "save",
            f"{WRITING} SQLSTATE: 58030",
            "org.apache.spark.sql.kafka010.KafkaIllegalStateException: Some data may have been "
            "lost because they are not available in Kafka any more;\neither the data was aged out",
            "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position 5",
        ),
        "RM406",
        NO,
        "OffsetOutOfRangeException: Fetch position 5",
    ),
    "a full disk, wherever it is said": Example(
        called(
            "save",
            f"{WRITING} SQLSTATE: 58030",
            "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
            "java.io.IOException: No space left on device",
            "java.lang.IllegalStateException: closed",
        ),
        "RM503",
        NO,
        "IOException: No space left on device",
    ),
    "a constraint of others": Example(
        called(
            "save",
            "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint small violated by row "
            "with values:\n - auction : 5000",
        ),
        "RM503",
        NO,
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint small violated by row "
        "with values:",
    ),
    "a file that is gone": Example(
        called(
            "sql",
            "org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered\n"
            "You can explicitly invalidate the cache. SQLSTATE: KD001",
            "java.io.FileNotFoundException: File file:/lake/part-0.parquet does not exist",
        ),
        "RM503",
        MAYBE,
        "FileNotFoundException: File file:/lake/part-0.parquet does not exist",
    ),
    "a table that is not there": Example(
        "[TABLE_OR_VIEW_NOT_FOUND] The table `a`.`b` cannot be found. SQLSTATE: 42P01",
        "RM503",
        NO,
        "[TABLE_OR_VIEW_NOT_FOUND] The table `a`.`b` cannot be found. SQLSTATE: 42P01",
    ),
    "a root without a word": Example(
        thrown("java.io.IOException: stream is broken", "java.io.EOFException"),
        "RM503",
        MAYBE,
        "IOException: stream is broken, caused by EOFException",
    ),
    "a function of ours that Spark called": Example(
        thrown(
            "org.apache.spark.SparkException: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error",
            "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
            'Traceback (most recent call last):\n  File "x.py", line 1, in call\n'
            "builtins.KeyError: 'topic'",
        ),
        "RM503",
        MAYBE,
        "KeyError: 'topic'",
    ),
    "a session that the server has closed": Example(
        "[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid. SQLSTATE: HY000",
        "RM503",
        NO,
        "[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid. SQLSTATE: HY000",
    ),
    "a context that was stopped": Example(
        called(
            "save",
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
        ),
        "RM503",
        NO,
        "IllegalStateException: Cannot call methods on a stopped SparkContext.",
    ),
    "what Java's language says, behind what names a condition": Example(
        STREAM.format("org.apache.spark.SparkRuntimeException: [TOO_LONG] 12 is too long")
        + "Caused by: org.apache.spark.SparkRuntimeException: [TOO_LONG] 12 is too long\n"
        "Caused by: java.lang.ArithmeticException: long overflow\n",
        "RM503",
        MAYBE,
        "[TOO_LONG] 12 is too long, caused by ArithmeticException: long overflow",
    ),
    "what Java's language says, behind a stream that ended": Example(
        STREAM.format("java.lang.OutOfMemoryError: Java heap space")
        + "Caused by: java.lang.OutOfMemoryError: Java heap space\n",
        "RM503",
        MAYBE,
        "OutOfMemoryError: Java heap space",
    ),
    "words that nobody knows": Example("something\nelse", "RM503", MAYBE, "something"),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_error_of_spark_is_told_by_its_root(example: Example) -> None:
    for raised in (Py4JError(example.text), PySparkException(example.text)):
        told = translate(raised, "p")
        assert told.found == example.found
        assert "An error occurred while calling" not in str(told)
        assert (told.code, told.passes, told.where) == (example.code, example.passes, "p")


def test_a_record_whose_time_spark_cannot_hold_is_named() -> None:
    text = (
        "Record at topic far.out partition 3 offset 41 has timestamp value 1700000000000000000 "
        "that overflows when converting to Spark's microsecond-precision TimestampType.\n"
        "Kafka record timestamps must be in milliseconds since epoch per the Kafka protocol."
    )
    cause = "Caused by: java.lang.ArithmeticException: long overflow"
    fault = thrown(f"org.apache.spark.sql.kafka010.KafkaIllegalStateException: {text}") + cause
    told = translate(PySparkException(fault), "p")
    assert (told.code, told.passes) == ("RM503", NO)
    assert told.where == "p: far.out partition 3 offset 41"
    assert str(told.found).startswith("1700000000000000000 ms since 1970")
    assert "offset 42 of the partition" in told.remedy


def test_the_root_may_be_in_a_cause_that_python_knows() -> None:
    outer = PySparkException("[STREAM_FAILED] it ended")
    outer.__cause__ = Py4JError(called("load", f"{KAFKA}.DisconnectException: gone"))
    assert translate(outer, "p").code == "RM301"
    assert reason(outer) == "DisconnectException: gone"


def test_what_a_python_worker_raised_is_told_without_its_frames() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "task.py", line 7, in written\n    yield from rows\n'
        "OSError: [Errno 28] No space left on device"
    )
    told = translate(PySparkException(text), "p")
    assert (told.code, told.found) == ("RM503", "OSError: [Errno 28] No space left on device")


def in_worker(last: str, frame: str = '  File "task.py", line 7, in written\n    x()\n') -> str:
    """What Spark says where Python raised something in a worker."""
    said = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
    return f"{said}{frame}{last}"


BASE = "pyspark.errors.exceptions.base"
UNFIT = {
    "ModuleNotFoundError: No module named 'rivermouth'": "No module named 'rivermouth'",
    "ModuleNotFoundError: No module named 'pyarrow'": "No module named 'pyarrow'",
    "ImportError: cannot import name 'x' from 'y' (/z.py)": "cannot import name 'x' from 'y'",
    f"{BASE}.PySparkImportError: [PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0 must be installed": (
        "PySparkImportError: [PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0 must be installed"
    ),
    f"{BASE}.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version:"
    " 3.10 than that in driver: 3.11, PySpark cannot run with different minor versions.": (
        "Python in worker has different version: 3.10 than that in driver: 3.11"
    ),
}


@pytest.mark.parametrize("last", UNFIT)
def test_workers_that_lack_a_package_or_differ_are_told_so_and_not_tried_again(last: str) -> None:
    told = translate(PySparkException(in_worker(last)), "p")
    assert (told.code, told.exit_code, told.where) == ("RM210", 2, "p")
    assert UNFIT[last] in told.found
    assert told.passes is NO
    assert ("PYSPARK_PYTHON" if "MISMATCH" in last else "where Spark's tasks run") in told.remedy


@pytest.mark.parametrize(
    "condition",
    ["[PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0", "[UNSUPPORTED_PACKAGE_VERSION] PyArrow >= 18.0.0"],
)
def test_a_driver_that_lacks_a_package_is_told_so_and_not_tried_again(condition: str) -> None:
    told = translate(PySparkImportError(f"{condition} must be installed"), "p")
    assert (told.code, told.exit_code, told.where) == ("RM206", 2, "p")
    assert told.found.startswith(condition)
    assert told.passes is NO
    assert "rivermouth doctor" in told.remedy


@pytest.mark.parametrize(
    ("last", "passes"),
    [
        ("AttributeError: 'pyarrow.lib.OSFile' object has no attribute 'handle'", MADE),
        ("KeyError: 'topic'", MADE),
        ("pyspark.errors.exceptions.base.PySparkTypeError: [X] y", MADE),
        ("pyarrow.lib.ArrowInvalid: Casting from timestamp[ns] would lose data", MADE),
        ("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", MADE),
        ("ssl.SSLCertVerificationError: certificate verify failed", MAYBE),
        ("somebody.else.Error: of their own", MAYBE),
        ("OSError: [Errno 5] Input/output error", MAYBE),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", MAYBE),
        ("MemoryError", MAYBE),
    ],
)
def test_what_code_raised_in_a_worker_passes_only_after_a_batch(last: str, passes: Passing) -> None:
    told = translate(PySparkException(in_worker(last)), "p")
    assert (told.code, told.passes) == ("RM503", passes)


@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (TypeError("failed to extract field PyCommitProperties.custom_metadata"), MADE),
        (PySparkTypeError("[X] y"), MADE),
        (OSError(5, "Input/output error"), MAYBE),
        (SSLCertVerificationError("certificate verify failed"), MAYBE),
        (RuntimeError("of no other class"), MAYBE),
    ],
)
def test_what_code_raised_here_passes_only_after_a_batch(fault: Exception, passes: Passing) -> None:
    assert translate(fault, "p").passes is passes


def test_what_was_tried_to_be_imported_in_vain_is_not_what_failed() -> None:
    frame = '  File "own.py", line 1, in own\n    import ujson\n'
    first = in_worker("ModuleNotFoundError: No module named 'ujson'\n\nDuring handling:\n\n", frame)
    again = "Traceback (most recent call last):\n" + frame + "KeyError: 'topic'"
    assert translate(PySparkException(first + again), "p").code == "RM503"


def test_the_trace_that_spark_connect_keeps_to_itself_is_read() -> None:
    fault = PySparkException("Job aborted.")
    trace = thrown("org.apache.spark.SparkException", f"{KAFKA}.TimeoutException: over")
    vars(fault)["_stacktrace"] = trace
    assert reason(fault) == "TimeoutException: over"


CONFLICTS = (
    "[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict detected",
    "[DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT] Transaction conflict",
    "[DELTA_CONCURRENT_DELETE_DELETE] conflict",
    "[DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException",
    "[DELTA_CONCURRENT_WRITE] ConcurrentWriteException",
    "[DELTA_METADATA_CHANGED] MetadataChangedException",
    "[DELTA_PROTOCOL_CHANGED] ProtocolChangedException: the protocol version has changed",
    "[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] This commit has failed",
    f"{DELTA}.ConcurrentAppendException: Files were added",
    f"{DELTA}.ConcurrentDeleteDeleteException: x",
    f"{DELTA}.ProtocolChangedException: x",
    "com.databricks.sql.transaction.tahoe.MetadataChangedException: x",
    "[SOME_NEW_ONE] of tomorrow. SQLSTATE: 2D521",
)


@pytest.mark.parametrize("text", CONFLICTS)
def test_every_conflict_that_delta_names_is_one(text: str) -> None:
    told = translate(PySparkException(called("save", text)), "p")
    assert (told.code, told.passes) == ("RM504", YES)
    assert is_conflict(PySparkException(text))


def test_what_java_says_of_its_own_collections_is_no_conflict() -> None:
    fault = PySparkException(thrown("java.util.ConcurrentModificationException: changed"))
    assert translate(fault, "p").code == "RM503"


@pytest.mark.parametrize("fault", [Py4JNetworkError("gone"), ConnectionRefusedError(111, "no")])
def test_a_jvm_that_is_gone_does_not_come_back(fault: Exception) -> None:
    told = translate(fault, "p")
    assert (told.what, told.passes) == ("Spark's JVM is gone", NO)
