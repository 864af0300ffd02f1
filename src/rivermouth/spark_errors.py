"""The edge where Spark's errors become ours."""

from __future__ import annotations

from rivermouth.errors import BatchFailed, RetentionLost, RivermouthError


def translate(fault: Exception, where: str) -> RivermouthError:
    """An error of Spark's as one of ours; the first line of what it said is kept."""
    text = said(fault)
    first = next((line for line in text.splitlines() if line.strip()), repr(fault))
    if "KAFKA_DATA_LOSS" in text:
        return RetentionLost("Spark found offsets missing in Kafka", where=where, found=first)
    return BatchFailed("Spark could not carry out the batch", where=where, found=first)


def said(fault: BaseException) -> str:
    """What an error and all its causes say; Spark puts the reason in any of them."""
    texts: list[str] = []
    cause: BaseException | None = fault
    while cause is not None and len(texts) < 20:
        texts.append(str(cause))
        cause = getattr(cause, "_cause", None) or cause.__cause__
    return "\n".join(texts)
