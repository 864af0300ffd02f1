"""Rows that a DELETE of others took, and that an operator accepted as deleted on purpose. Pure.

They are named by the offsets of their records, so that a ledger never holds a key or a value: a
person's data must not live on in the record of their erasure. In an entry::

    "deletes": [{"version": 12, "rows": {"orders": {"0": [5, 2, 7, 1]}}},
                {"version": 15, "unlisted": 3}]

The numbers of a partition are the first offset, then in turn how many offsets are deleted and how
many are not: here 5 and 6, then 14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rivermouth.protocol.compact import number
from rivermouth.protocol.offsets import OffsetRange, TopicPartition

RUNS_MAX = 5_000
"""How many runs of offsets one entry lists: some 60 KB."""


@dataclass(frozen=True)
class Deleted:
    """What the DELETE at ``version`` took.

    ``rows`` are the offsets of the rows' records, in order. Where nobody can tell them any more,
    ``unlisted`` is how many rows the DELETE took at most. Raises ValueError unless it is one of
    both.
    """

    version: int
    rows: tuple[OffsetRange, ...] = ()
    unlisted: int = 0

    def __post_init__(self) -> None:
        if self.unlisted < 0 or bool(self.rows) == bool(self.unlisted):
            raise ValueError(f"rows, or a number of them: {self}")

    @property
    def count(self) -> int:
        """How many rows it took, at most where they are not listed."""
        return sum(each.span for each in self.rows) + self.unlisted


def listed(deleted: Deleted) -> dict[str, Any]:
    """As an entry tells it, see the module."""
    facts: dict[str, Any] = {"version": deleted.version}
    if deleted.unlisted:
        facts["unlisted"] = deleted.unlisted
    numbers: dict[str, dict[str, list[int]]] = {}
    reached: dict[TopicPartition, int] = {}
    for each in deleted.rows:
        of_partition = numbers.setdefault(each.topic, {}).setdefault(str(each.partition), [])
        before = reached.get(each.topic_partition, 0)
        of_partition += [each.from_offset - before, each.span]
        reached[each.topic_partition] = each.until_offset
    return {**facts, "rows": numbers} if numbers else facts


def from_listed(facts: Mapping[str, Any]) -> Deleted:
    """The inverse of ``listed``. Raises LookupError, TypeError, ValueError or AttributeError."""
    rows = (
        each
        for topic, partitions in facts.get("rows", {}).items()
        for partition, numbers in partitions.items()
        for each in _runs(TopicPartition(topic, int(partition)), numbers)
    )
    return Deleted(number(facts["version"]), tuple(rows), number(facts.get("unlisted", 0)))


def _runs(place: TopicPartition, numbers: Sequence[int]) -> Iterator[OffsetRange]:
    at = 0
    for skipped, span in zip(numbers[::2], numbers[1::2], strict=True):
        start = at + number(skipped)
        at = start + number(span)
        yield OffsetRange(place, start, at)


def portions(deletes: Iterable[Deleted], most: int = RUNS_MAX) -> Iterator[tuple[Deleted, ...]]:
    """The same rows in portions of at most ``most`` runs: what one entry may list each."""
    portion: list[Deleted] = []
    room = most
    for each in deletes:
        if each.unlisted:
            portion.append(each)
        rows = each.rows
        while rows:
            if not room:
                yield tuple(portion)
                portion, room = [], most
            portion.append(Deleted(each.version, rows[:room]))
            rows, room = rows[room:], max(0, room - len(rows))
    if portion:
        yield tuple(portion)
