"""The fold of an upsert, entry by entry, repeated from its rule and not from the writer.

Inside an entry, a tombstone removes the earlier records of its key in its own partition;
of what is left the greatest rank wins. A tombstone in an entry deletes the row that stood
before that entry; otherwise the winner replaces that row only if it ranks higher. The rank
is (order_by columns, topic, partition, offset), nulls lowest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from rivermouth.verify.ledger.entry import Place, shown

Key = tuple[Any, ...]


class Change(NamedTuple):
    """One good record of a key; ``value`` is None for a tombstone."""

    entry: int
    place: Place
    offset: int
    order: tuple[Any, ...]
    timestamp_us: int
    value: bytes | None

    @property
    def rank(self) -> tuple[Any, ...]:
        """What the greatest of wins."""
        return rank(self.order, self.place, self.offset)

    def __str__(self) -> str:
        return f"{shown(self.place)}@{self.offset}"


@dataclass(frozen=True)
class Standing:
    """What stands of a key after an entry: a row, or none.

    ``certain`` is False while records or entries that nobody can read any more may have
    left another row.
    """

    row: Change | None
    certain: bool


def rank(order: Iterable[Any], place: Place, offset: int) -> tuple[Any, ...]:
    """The rank of a record or row: nulls lowest, NaN highest, then topic, partition, offset."""
    return (*(_ranked(each) for each in order), place, offset)


def _ranked(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and value != value:
        return (1, True, 0.0)
    return (1, False, value)


def fold(changes: Iterable[Change], dark_until: int, *, certain: bool) -> Standing:
    """Fold all changes of one key, in any order.

    Entries below ``dark_until`` may have had records that cannot be read any more;
    ``certain`` says whether no row stood before the first entry.
    """
    standing = Standing(None, certain)
    for entry, batch in groupby(sorted(changes, key=attrgetter("entry")), attrgetter("entry")):
        had_tombstone, winner = _winner(list(batch))
        row = standing.row
        if had_tombstone or row is None or (winner is not None and winner.rank > row.rank):
            row = winner if had_tombstone or winner is not None else row
        known = had_tombstone if entry >= dark_until else False
        standing = Standing(row, standing.certain or known)
    return standing


def _winner(batch: list[Change]) -> tuple[bool, Change | None]:
    last: dict[Place, int] = {}
    for each in batch:
        if each.value is None:
            last[each.place] = max(each.offset, last.get(each.place, -1))
    left = [
        each for each in batch if each.value is not None and each.offset > last.get(each.place, -1)
    ]
    return bool(last), max(left, key=attrgetter("rank"), default=None)
