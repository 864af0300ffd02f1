"""The edge where Spark's errors become ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from rivermouth.errors import (
    BatchFailed,
    CommitConflict,
    Passing,
    RetentionLost,
    RivermouthError,
    of_python,
    of_text,
    of_the_disk,
)
from rivermouth.kafka.answers import Answer, java_answer, source_error
from rivermouth.spark.causes import Cause, causes, raised_in_worker, root, said, sql_states
from rivermouth.spark.pythons import lacking

__all__ = ["FAULTS", "is_conflict", "is_gone", "reason", "said", "translate"]

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
    chain = causes(text)
    found = _reason(text, chain) or repr(fault)
    told = _TOO_FAR.search(text)
    if told is not None:
        return _of_a_time(told, where)
    if _LOST.search(text):
        return RetentionLost("Spark found offsets missing in Kafka", where=where, found=found)
    if _CONFLICT.search(text):
        return CommitConflict("commits of others were in the way", where=where, found=found)
    answer = _of_kafka(chain)
    if answer is not None and answer is not Answer.OTHER:
        return source_error(answer, found, where)
    passes = Passing.NO if _stays(fault, text, chain) else _of_code(fault, text)
    what = "Spark could not carry out the batch"
    return BatchFailed(what, where=where, found=found, passes=passes)


def _of_a_time(told: re.Match[str], where: str) -> BatchFailed:
    """The error of a record whose timestamp, in microseconds, is greater than 64 bits."""
    topic, partition, after = told["topic"], told["partition"], int(told["offset"]) + 1
    return BatchFailed(
        "a record has a timestamp that Spark cannot hold",
        where=f"{where}: {topic} partition {partition} offset {told['offset']}",
        found=f"{told['time']} ms since 1970, which may be microseconds or nanoseconds",
        remedy="Correct its producer. To go on, set `on_data_loss: record`, and delete with "
        f"`kafka-delete-records` what is before offset {after} of the partition; what of it was "
        "not read is lost",
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
    told = [each for each in answers if each is not None and each is not Answer.OTHER]
    refused = [each for each in told if each in _DECISIVE]
    return next(reversed(refused or told), None)
