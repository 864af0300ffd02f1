"""The nouns: partitions, half-open offset ranges, positions, watermarks.

An offset range ``[from, until)`` names offsets, not records: compaction and transaction
markers leave holes, so its ``span`` must never be reported as a number of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, order=True)
class TopicPartition:
    """One partition of one topic; orders by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


PartitionOffset = tuple[TopicPartition, int]
"""One offset of one partition."""
Anchor = tuple[int, int]
"""An offset, and a leader epoch in which the partition's log reached to it."""


@dataclass(frozen=True, order=True)
class OffsetRange:
    """The offsets ``from_offset <= o < until_offset`` of one partition."""

    topic_partition: TopicPartition
    from_offset: int
    until_offset: int

    def __post_init__(self) -> None:
        if not 0 <= self.from_offset <= self.until_offset:
            raise ValueError(f"not a half-open offset range: {self}")

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.topic_partition.partition

    @property
    def span(self) -> int:
        """How many offsets lie in the range: an upper bound of its records."""
        return self.until_offset - self.from_offset

    def as_dict(self) -> dict[str, str | int]:
        """The JSON object of the range."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "from_offset": self.from_offset,
            "until_offset": self.until_offset,
        }

    def without(self, others: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
        """The parts that lie in none of ``others``, in order."""
        left, place = [(self.from_offset, self.until_offset)], self.topic_partition
        for each in others:
            if each.topic_partition == place:
                before = [(start, min(until, each.from_offset)) for start, until in left]
                after = [(max(start, each.until_offset), until) for start, until in left]
                left = [(start, until) for start, until in (*before, *after) if start < until]
        return tuple(OffsetRange(place, *each) for each in sorted(left))

    def __str__(self) -> str:
        return f"{self.topic_partition}[{self.from_offset},{self.until_offset})"


@dataclass(frozen=True)
class Watermarks:
    """What Kafka holds of a partition: the first kept offset, and the next to be written.

    ``high`` is the last *stable* offset: what a ``read_committed`` reader can reach.
    """

    low: int
    high: int


@dataclass(frozen=True)
class LogEnd:
    """Where a partition's log ends: at the last stable offset, as told in this leader epoch.

    ``epoch`` is None where the broker does not tell.
    """

    offset: int
    epoch: int | None = None


@dataclass(frozen=True)
class Position:
    """The next offset to read, per partition; never negative. Immutable; iterates in order."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.offsets.items()))
        if any(offset < 0 for offset in ordered.values()):
            raise ValueError(f"not a position: {ordered}")
        object.__setattr__(self, "offsets", MappingProxyType(ordered))

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.offsets)

    def get(self, topic_partition: TopicPartition) -> int | None:
        """The next offset to read, or None for a partition never seen."""
        return self.offsets.get(topic_partition)

    def advance(self, ranges: Iterable[OffsetRange]) -> Position:
        """The position after ``ranges``; a partition never seen is born at its ``from``.

        Raises ValueError where a range does not start at the position.
        """
        moved = dict(self.offsets)
        for each in ranges:
            position = moved.get(each.topic_partition, each.from_offset)
            if position != each.from_offset:
                raise ValueError(f"{each} does not start at the position {position}")
            moved[each.topic_partition] = each.until_offset
        return Position(moved)

    def as_nested(self) -> dict[str, dict[str, int]]:
        """``{topic: {partition: next offset}}``, see ``nested``."""
        return nested(self.offsets)

    @staticmethod
    def from_nested(facts: Mapping[str, Mapping[str, int]]) -> Position:
        """The inverse of ``as_nested``."""
        return Position(unnested(facts))


def nested(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """``{topic: {partition: number}}`` with partitions as text, as JSON wants."""
    by_topic: dict[str, dict[str, int]] = {}
    for each, number in numbers.items():
        by_topic.setdefault(each.topic, {})[str(each.partition)] = number
    return by_topic


def unnested(facts: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The inverse of ``nested``."""
    return {
        TopicPartition(topic, int(partition)): number
        for topic, partitions in facts.items()
        for partition, number in partitions.items()
    }


def runs(numbers: Sequence[int]) -> list[int]:
    """Ascending numbers as the first and the last of each run: ``0, 1, 2, 7`` is ``[0,2,7,7]``."""
    found: list[int] = []
    for each in numbers:
        if found and each == found[-1] + 1:
            found[-1] = each
        else:
            found += [each, each]
    return found


def from_runs(runs: Sequence[int], most: int) -> list[int]:
    """The inverse of ``runs``. Raises ValueError for more than ``most`` numbers, or where they are
    not ascending.
    """
    found: list[int] = []
    for first, last in zip(runs[::2], runs[1::2], strict=True):
        if not 0 <= number(first) <= number(last):
            raise ValueError(f"not a run of partitions: {first} to {last}")
        if last - first >= most - len(found) or (found and first <= found[-1]):
            raise ValueError(f"partitions that do not fit: {first} to {last}")
        found += range(first, last + 1)
    return found


def packed(numbers: Sequence[int | None]) -> int | list[int | None] | None:
    """The numbers; where all are equal, that number alone."""
    return numbers[0] if numbers and len({*numbers}) == 1 else [*numbers]


def unpacked(packed: object, count: int) -> list[int | None]:
    """The inverse of ``packed``: ``count`` numbers. Raises ValueError."""
    listed = packed if isinstance(packed, list) else [packed] * count
    if len(listed) != count:
        raise ValueError(f"{len(listed)} numbers for {count} partitions")
    return [None if each is None else number(each) for each in listed]


def number(value: object) -> int:
    """A value of JSON that is a whole number. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"not a whole number: {value!r}")
    return value
