"""The rule of tables that keep the newest row of each key, repeated from its description.

The entries of the ledger count in their order. Inside an entry, a tombstone removes the earlier
records of its key in its own partition; of what is left the highest rank wins. A tombstone in an
entry deletes the row from before that entry; otherwise the winner replaces that row only if its
rank is higher. The rank is (order_by columns, topic, partition, offset), nulls lowest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from rivermouth.verify.ledger.entry import Partition, shown

Key = tuple[Any, ...]


class Change(NamedTuple):
    """One good record of a key; ``value`` is None for a tombstone."""

    entry: int
    """The index of its entry among the effective entries."""
    partition: Partition
    offset: int
    order: tuple[Any, ...]
    timestamp_us: int
    value: bytes | None

    @property
    def rank(self) -> tuple[Any, ...]:
        """The highest one wins."""
        return rank(self.order, self.partition, self.offset)

    def __str__(self) -> str:
        return f"{shown(self.partition)}@{self.offset}"


@dataclass(frozen=True)
class Latest:
    """What the rule leaves of a key: a row, or none.

    ``certain`` is False where records or entries that can no longer be read may have left
    another row.
    """

    row: Change | None
    certain: bool


def rank(order: Iterable[Any], partition: Partition, offset: int) -> tuple[Any, ...]:
    """The rank of a record or row: nulls lowest, NaN highest, then topic, partition, offset."""
    return (*(_ranked(each) for each in order), partition, offset)


def _ranked(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and value != value:
        return (1, True, 0.0)
    return (1, False, value)


def latest(changes: Iterable[Change], readable_from: int, *, certain: bool) -> Latest:
    """Apply the rule to all changes of one key, in any order.

    From entry ``readable_from`` on, Kafka still holds every record; earlier entries may have had
    more changes. ``certain`` says whether the key is known to have no row before the first entry.
    """
    found = Latest(None, certain)
    for entry, batch in groupby(sorted(changes, key=attrgetter("entry")), attrgetter("entry")):
        had_tombstone, winner = _winner(list(batch))
        row = found.row
        if had_tombstone or row is None or (winner is not None and winner.rank > row.rank):
            row = winner if had_tombstone or winner is not None else row
        known = had_tombstone and entry >= readable_from
        found = Latest(row, found.certain or known)
    return found


def _winner(batch: list[Change]) -> tuple[bool, Change | None]:
    """Whether an entry has a tombstone of the key, and which of its changes wins."""
    last: dict[Partition, int] = {}
    for each in batch:
        if each.value is None:
            last[each.partition] = max(each.offset, last.get(each.partition, -1))
    left = [
        each
        for each in batch
        if each.value is not None and each.offset > last.get(each.partition, -1)
    ]
    return bool(last), max(left, key=attrgetter("rank"), default=None)
