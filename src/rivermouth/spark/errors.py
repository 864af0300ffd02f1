"""The edge where Spark's errors become ours, by the root of their causes.

An error of the JVM arrives in one of three forms: by py4j as it is, by PySpark's own exceptions,
or by Spark Connect. All of them can tell the printed stack trace, and in that every cause has a
line of its own. So the text is read, and nothing is asked of a JVM that may be gone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from rivermouth.errors import (
    BatchFailed,
    CommitConflict,
    MissingPackage,
    Passing,
    RetentionLost,
    RivermouthError,
    SetupError,
    WorkersUnfit,
    of_python,
    of_text,
    of_the_disk,
)
from rivermouth.errors.kafka import Answer, java_answer, source_error
from rivermouth.errors.registry import SchemasUnknown

_FRAME = re.compile(r"^(\s+at\s|\s*\.\.\. \d+ more|\s+Suppressed:|\s+Caused by:)")
_NOISE = re.compile(
    r"^(An error occurred while calling .*|JVM stacktrace:|Driver stacktrace:|=== .* ===|)$"
)
_THROWN = re.compile(
    r"^(?:Caused by: |: )?(?P<kind>(?:\w+\.)+[\w$]*[A-Z][\w$]*)(?:: (?P<said>.*))?$"
)
# What the task said stands at the end of the line in which the job says that it lost the task.
_TASK = re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\)(?: \(.*?\))?: (?P<said>.+)$")
_STREAM = re.compile(r"terminated with exception: (?P<said>.+)$")
# What Python's interpreter says last, after the frames of a trace.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_]+(\.[A-Z0-9_]+)?\]")
_STATE = re.compile(r"SQLSTATE: (\w{5})")


@dataclass(frozen=True)
class Cause:
    """One link of a chain: the class that was thrown (empty: not told), and what it said."""

    kind: str
    said: str

    @property
    def name(self) -> str:
        """The class without its package."""
        return re.split(r"[.$]", self.kind)[-1]

    def __str__(self) -> str:
        """What it said, under the name of its class where no error condition names it."""
        if _CONDITION.search(self.said) or not self.kind:
            return self.said
        return f"{self.name}: {self.said}" if self.said else self.name


def said(fault: BaseException) -> str:
    """What an error and all its causes say; Spark puts the reason in any of them."""
    texts: list[str] = []
    cause: BaseException | None = fault
    while cause is not None and len(texts) < 20:
        texts.append(_text(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(texts)


def _text(fault: BaseException) -> str:
    """What one error says, with the trace of the server that Spark Connect may keep to itself."""
    text, trace = str(fault), getattr(fault, "_stacktrace", None)
    return f"{text}\n{trace}" if isinstance(trace, str) and trace not in text else text


def causes(text: str) -> list[Cause]:
    """The causes that a text with stack traces tells, from the outermost to the root."""
    lines = [line.rstrip() for line in text.splitlines()]
    telling = (line for line in lines if not _FRAME.match(line) and not _NOISE.match(line.strip()))
    found = list[Cause]()
    for number, line in enumerate(telling):
        thrown = _THROWN.match(line)
        if thrown is not None:
            found += _unpacked(Cause(thrown["kind"], (thrown["said"] or "").strip()))
        elif number == 0 or _CONDITION.search(line):  # else the rest of a text of several lines
            found += _unpacked(Cause("", line.removeprefix(": ").strip()))
    return found


def _unpacked(cause: Cause) -> Iterator[Cause]:
    """The cause, and those that its own text tells."""
    yield cause
    inner = _TASK.match(cause.said) or _STREAM.search(cause.said)
    if inner is not None:
        thrown = _THROWN.match(inner["said"])
        if thrown is not None:
            yield from _unpacked(Cause(thrown["kind"], (thrown["said"] or "").strip()))
        else:
            yield from _unpacked(Cause("", inner["said"]))


def root(chain: Sequence[Cause]) -> str:
    """The innermost cause that says something, in one line; empty where there is none.

    What Java's own language says, such as "long overflow", comes behind what names a condition.
    """
    telling = [each for each in chain if each.said]
    if not telling:
        return str(chain[-1]) if chain else ""
    last = telling[-1]
    named = [e for e in telling if _CONDITION.search(e.said) and not _STREAM.search(e.said)]
    if named and named[-1] is not last and last.kind.startswith("java.lang."):
        return f"{named[-1]}, caused by {last}"
    return str(last) if chain[-1].said else f"{last}, caused by {chain[-1].name}"


def raised(text: str) -> str:
    """What Python raised last in a text with traces of it, in one line; empty where it has none."""
    found = _RAISED.findall(text)
    return str(found[-1]) if found else ""


def raised_in_worker(text: str) -> str:
    """The same, where a Python worker of Spark raised it."""
    return raised(text) if "thrown from the Python worker" in text else ""


def sql_states(text: str) -> set[str]:
    """The SQLSTATEs that a text with stack traces tells."""
    return {*_STATE.findall(text)}


_NOT_IMPORTED = re.compile(r"(?:[\w.]+\.)?((?:ModuleNotFound|PySparkImport|Import)Error: .+)")
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (?P<said>[^,\n]+)")
_DOCTOR = "`rivermouth doctor` names each package with its version"


def lacking(fault: Exception, where: str) -> SetupError | None:
    """What one of the Pythons cannot import, or that they differ; None: it is something else."""
    if isinstance(fault, ImportError):
        return MissingPackage(
            "the driver cannot import what a batch needs",
            where=where,
            found=str(fault),
            remedy=f"Run: pip install 'rivermouth[local]'. {_DOCTOR}",
        )
    text = said(fault)
    other = _OTHER_PYTHON.search(text)
    if other is not None:
        return WorkersUnfit(
            "Spark's Python workers have another Python than the driver",
            where=where,
            expected="the same minor version",
            found=other["said"],
            remedy=f"Set PYSPARK_PYTHON to a Python {sys.version_info[0]}.{sys.version_info[1]} of"
            " the workers before the session is made, and run again",
        )
    missing = _NOT_IMPORTED.match(raised_in_worker(text))
    if missing is None:
        return None
    return WorkersUnfit(
        "Spark's Python workers cannot import what a batch needs", where=where, found=missing[1]
    )


FAULTS = (PySparkException, Py4JError, ConnectionError)
"""What a session raises; a JVM that dies lets even an ordinary question end in the last two."""
# The driver's words, and an executor's.
_LOST = re.compile(r"KAFKA_DATA_LOSS|Some data may have been lost because they are not available")
_TOO_FAR = re.compile(
    r"Record at topic (?P<topic>\S+) partition (?P<partition>\d+) offset (?P<offset>\d+) "
    r"has timestamp value (?P<time>-?\d+)"
)
# As Delta names them, in its conditions and by its classes; Databricks has the same names.
_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_\w+|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED"
    r"|DELTA_MAX_COMMIT_RETRIES_EXCEEDED|DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    r"|SQLSTATE: 2D521|\b(Concurrent(Append|DeleteRead|DeleteDelete|Transaction|Write)"
    r"|MetadataChanged|ProtocolChanged|DeltaConcurrentModification)Exception\b"
)
# What another try meets again: classes of SQLSTATEs (what is not supported, data that do not fit,
# constraints, statements or names that are wrong), and classes of errors that tell no SQLSTATE.
_STATES_THAT_STAY = ("0A", "21", "22", "23", "42")
_STAYS = re.compile(r"(Analysis|Parse|InvariantViolation|UnsupportedOperation)Exception$")
# A session that is gone, on this side of the network or on the other one.
_ENDED = re.compile(r"INVALID_HANDLE\.SESSION_|SparkContext was shut down|stopped SparkContext")
_DECISIVE = (
    Answer.UNKNOWN_LOGIN,
    Answer.OLD_TOKEN,
    Answer.FORBIDDEN,
    Answer.OPTION,
    Answer.NO_TOPIC,
)


def translate(fault: Exception, where: str) -> RivermouthError:
    """An error of Spark's as one of ours: the root of its causes is kept, in one line."""
    if is_gone(fault):
        return BatchFailed(
            "Spark's JVM is gone",
            where=where,
            found=repr(fault),
            remedy="Give it more memory if it had too little, and run again",
            passes=Passing.NO,
        )
    unfit = lacking(fault, where)
    if unfit is not None:
        return unfit
    text = said(fault)
    unknown = SchemasUnknown.told_by(text)
    if unknown:
        return SchemasUnknown(unknown, where)
    chain = causes(text)
    found = _reason(text, chain) or repr(fault)
    too_far = _TOO_FAR.search(text)
    if too_far is not None:
        return _of_a_time(too_far, where)
    if _LOST.search(text):
        return RetentionLost("Spark found offsets missing in Kafka", where=where, found=found)
    if _CONFLICT.search(text):
        return CommitConflict("commits of others were in the way", where=where, found=found)
    answer = _of_kafka(chain)
    if answer is not None and answer is not Answer.OTHER:
        return source_error(answer, found, where)
    passes = Passing.NO if _stays(fault, text, chain) else _of_code(fault, text)
    what = "the batch could not be carried out"
    return BatchFailed(what, where=where, found=found, passes=passes)


def _of_a_time(record: re.Match[str], where: str) -> BatchFailed:
    """The error of a record whose timestamp, in microseconds, is greater than 64 bits."""
    topic, partition, offset = record["topic"], record["partition"], int(record["offset"])
    return BatchFailed(
        "a record has a timestamp that Spark cannot hold",
        where=f"{where}: {topic} partition {partition} offset {offset}",
        found=f"{record['time']} ms since 1970, which may be microseconds or nanoseconds",
        remedy="Correct its producer. To go on, set `on_data_loss: record`, and delete with "
        f"`kafka-delete-records` what is before offset {offset + 1} of the partition; what of it "
        "was not read is lost",
        passes=Passing.NO,
    )


def is_gone(fault: Exception) -> bool:
    """Whether the JVM of the session is gone, which does not come back."""
    return isinstance(fault, (Py4JNetworkError, ConnectionError))


def is_conflict(fault: Exception) -> bool:
    """Whether commits of others were in the way of a write."""
    return _CONFLICT.search(said(fault)) is not None


def reason(fault: Exception) -> str:
    """The root of an error's causes, in one line."""
    text = said(fault)
    return _reason(text, causes(text)) or repr(fault)


def _reason(text: str, chain: Sequence[Cause]) -> str:
    in_worker = raised_in_worker(text)
    if in_worker:
        return in_worker
    disk = of_the_disk(text)
    return root([each for each in chain if disk in each.said]) if disk else root(chain)


def _of_code(fault: Exception, text: str) -> Passing:
    """Whether it may pass, by what Python raised, in a worker or here."""
    in_worker = raised_in_worker(text)
    return of_text(in_worker) if in_worker else of_python(type(fault))


def _stays(fault: Exception, text: str, chain: Sequence[Cause]) -> bool:
    names = [type(fault).__name__, *(each.name for each in chain)]
    states = sql_states(text)
    if _ENDED.search(text):
        return True
    return any(map(_STAYS.search, names)) or any(each[:2] in _STATES_THAT_STAY for each in states)


def _of_kafka(chain: Sequence[Cause]) -> Answer | None:
    """What Kafka's client says in a chain: a refusal wherever it stands, else the innermost."""
    answers = [java_answer(each.kind, each.said) for each in chain]
    known = [each for each in answers if each is not None and each is not Answer.OTHER]
    refused = [each for each in known if each in _DECISIVE]
    return next(reversed(refused or known), None)
