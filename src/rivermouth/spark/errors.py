"""The edge where Spark's errors become ours."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from rivermouth.errors import BatchFailed, CommitConflict, RetentionLost, RivermouthError

FAULTS = (PySparkException, Py4JError, ConnectionError)
"""What a session raises; a JVM that dies lets even an ordinary question end in the last two."""
_DISK = ("No space left on device", "Read-only file system", "Too many open files")
"""What matters most, wherever in a long chain of causes it is said."""
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_]+(\.[A-Z0-9_]+)?\]")


def translate(fault: Exception, where: str) -> RivermouthError:
    """An error of Spark's as one of ours; what it said in one line is kept."""
    if isinstance(fault, (Py4JNetworkError, ConnectionError)):
        return BatchFailed(
            "Spark's JVM is gone",
            where=where,
            found=repr(fault),
            remedy="Give it more memory if it had too little, and run again",
        )
    text = said(fault)
    full = next((each for each in _DISK if each in text), "")
    first = full or _telling(text) or repr(fault)
    if "KAFKA_DATA_LOSS" in text:
        return RetentionLost("Spark found offsets missing in Kafka", where=where, found=first)
    if "DELTA_CONCURRENT" in text or "DELTA_METADATA_CHANGED" in text:
        return CommitConflict("commits of others were in the way", where=where, found=first)
    return BatchFailed("Spark could not carry out the batch", where=where, found=first)


def _telling(text: str) -> str:
    """The line that names an error condition of Spark's or Delta's, else the first one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = (line for line in lines if _CONDITION.search(line))
    return next(named, lines[0] if lines else "")


def said(fault: BaseException) -> str:
    """What an error and all its causes say; Spark puts the reason in any of them."""
    texts: list[str] = []
    cause: BaseException | None = fault
    while cause is not None and len(texts) < 20:
        texts.append(str(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(texts)
