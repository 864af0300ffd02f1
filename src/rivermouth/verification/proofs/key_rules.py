"""Rules of keyed tables: which row the records of one key leave. Each shape repeats its own.

A rule is written from the description of its shape and shares nothing with the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from rivermouth.verification.ledger.entry import Partition, shown

Key = tuple[Any, ...]
Rank = tuple[Any, ...]


class Change(NamedTuple):
    """One good record of a key; ``value`` is None for a tombstone. ``gone``: it is an event that
    deletes the row of the key, and is ordered as rows are.
    """

    entry: int
    """The index of its entry among the effective entries."""
    partition: Partition
    offset: int
    order: tuple[Any, ...]
    timestamp_us: int
    value: bytes | None
    metadata: tuple[Any, ...] = ()
    gone: bool = False

    @property
    def rank(self) -> Rank:
        """See ``rank``."""
        return rank(self.order, self.partition, self.offset)

    def __str__(self) -> str:
        return f"{shown(self.partition)}@{self.offset}"


class Row(NamedTuple):
    """A row of the table: where its record came from, and its values in column order."""

    partition: Partition
    offset: int
    values: tuple[Any, ...]
    timestamp_us: int | None
    metadata: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{shown(self.partition)}@{self.offset}"


@dataclass
class UnknownKeys:
    """Records of which nobody can tell the key or the order; ``deletes``: one may delete a row."""

    places: set[tuple[Partition, int]] = field(default_factory=set)
    deletes: bool = False


@dataclass(frozen=True)
class Expected:
    """What a rule leaves of a key: a row, or none.

    ``certain`` is False where records or entries that can no longer be read may have left
    another row. ``stays``: they may have left an earlier row, but neither none nor a later one.
    ``before`` are the records whose values stand where that of the row tells none, the newest
    first.
    """

    row: Change | None
    certain: bool
    stays: bool = False
    before: tuple[Change, ...] = ()


class Rule(Protocol):
    """Which row the records of a key leave in the table."""

    def expected(self, changes: Sequence[Change], readable_from: int, *, certain: bool) -> Expected:
        """Apply the rule to all changes of one key, in any order.

        From entry ``readable_from`` on, Kafka still holds every record; earlier entries may have
        had more changes. ``certain`` says whether the key is known to have no row before the
        first entry.
        """

    def may_stand(self, found: Rank, expected: Rank) -> bool:
        """Whether a record of rank ``found``, if there was one, may have left its row in place of
        the expected one. A row like that is unchecked where its record cannot be read any more.
        """


def rank(order: Iterable[Any], partition: Partition, offset: int) -> Rank:
    """The rank of a record or row: (order_by columns, topic and partition, offset).

    Nulls are lowest, NaN is highest.
    """
    return (*(_ranked(each) for each in order), partition, offset)


def _ranked(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and value != value:
        return (1, True, 0.0)
    return (1, False, value)
