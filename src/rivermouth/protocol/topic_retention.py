"""How long Kafka keeps a record that is not read yet. Pure.

Kafka deletes a whole segment of a log once the newest record in it is older than ``retention.ms``.
The newest record of a segment is not older than any other record in it. So age takes a record at
the earliest when the record itself is older than ``retention.ms``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


@dataclass(frozen=True)
class Retention:
    """When a topic deletes records.

    ``policy`` is ``cleanup.policy``, ``age_ms`` is ``retention.ms``, ``size`` is
    ``retention.bytes``, which counts for each partition; None: no limit.
    """

    policy: str
    age_ms: int | None
    size: int | None

    @property
    def deletes(self) -> bool:
        """Whether age and size delete records; else only compaction removes some."""
        return "delete" in self.policy.split(",")

    @property
    def kept_for(self) -> str | None:
        """How long the topic keeps a record; None: no record is deleted because of its age."""
        if self.age_ms is None or not self.deletes:
            return None
        return in_words(self.age_ms)


def in_words(duration_ms: int) -> str:
    """A duration as people say it, exact: ``7 days``, ``1 day 12 hours``."""
    words, left = [], duration_ms
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            words.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    if left or not words:
        words.append(f"{left} ms")
    return " ".join(words)


class Outlook(Enum):
    """What may happen to the next record that a pipeline must read."""

    NOTHING_WAITS = "nothing waits"
    KEPT = "kept"
    """Neither age nor size deletes it."""
    BY_AGE = "by age"
    """Age may delete it, not before ``TimeLeft.seconds`` are over."""
    BY_AGE_OR_SIZE = "by age or size"
    """The same, and the size of the partition may delete it at any time."""
    BY_SIZE = "by size"
    """The size of the partition may delete it at any time."""
    GONE = "gone"
    """Kafka has deleted it before it was read."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class TimeLeft:
    """How long Kafka keeps the next record that a pipeline must read, as an estimate.

    ``seconds``: age takes it in so many seconds at the earliest; 0: it may go at any time; None:
    there is no number. ``basis`` says in words what the estimate rests on, or why there is none.
    ``record_ms`` is the timestamp of that record, in ms since 1970; None: it is not known.
    """

    outlook: Outlook
    basis: str
    seconds: float | None = None
    record_ms: int | None = None


NOTHING_WAITS = TimeLeft(Outlook.NOTHING_WAITS, "no record waits")


def unknown(why: str) -> TimeLeft:
    """That the estimate cannot be made, and why."""
    return TimeLeft(Outlook.UNKNOWN, why)


def gone(position: int, earliest: int) -> TimeLeft:
    """That Kafka deleted the offsets from ``position`` on, up to ``earliest``, before a read."""
    return TimeLeft(Outlook.GONE, f"Kafka deleted the offsets {position:,} to {earliest - 1:,}")


def time_left(record_ms: int, retention: Retention, now_ms: float) -> TimeLeft:
    """The estimate for a record with the timestamp ``record_ms``; all times in ms since 1970.

    A negative timestamp: the record has none.
    """
    size = f"retention.bytes {retention.size:,}" if retention.size is not None else ""
    stamp = record_ms if record_ms >= 0 else None
    if not retention.deletes:
        basis = f"cleanup.policy {retention.policy} does not delete by age or size"
        return TimeLeft(Outlook.KEPT, basis, record_ms=stamp)
    if retention.age_ms is None and not size:
        basis = "retention.ms -1 and retention.bytes -1: no limit"
        return TimeLeft(Outlook.KEPT, basis, record_ms=stamp)
    if retention.age_ms is None:
        basis = f"{size} deletes by size, retention.ms -1 not by age"
        return TimeLeft(Outlook.BY_SIZE, basis, record_ms=stamp)
    if stamp is None:
        return unknown("the record has no timestamp")
    seconds = max(0.0, round((stamp + retention.age_ms - now_ms) / 1000, 3))
    basis = f"the record's timestamp plus retention.ms {retention.age_ms:,}"
    basis += "; Kafka deletes whole segments, so not before"
    if size:
        basis += f"; {size} may delete it sooner"
    if "compact" in retention.policy:
        basis += "; compaction may remove an older record of a key sooner"
    outlook = Outlook.BY_AGE_OR_SIZE if size else Outlook.BY_AGE
    return TimeLeft(outlook, basis, seconds, stamp)
