"""What the records of a batch do: to the rows of the table, or to a sink. A value for each mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Record = tuple[int, int, int]
"""A record: the incarnation of its topic, how often its log had been cut, and its offset."""

Rows = tuple[tuple[int, int], ...]
"""Rows of the table: the key of each, and its value. A key should have one."""


class Wrote(NamedTuple):
    """What a commit does with one key: it makes the row, or replaces those that it has read."""

    key: int
    value: int
    new: bool


FIRST, LAST = "first", "last"
"""Before the commit; or after it, once it was read back."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of a batch, which comes with its commit or is sent beside it.

    ``change`` is what a batch does to the rows that its transaction has read, in the commit that
    carries its offsets. ``fold`` is what the rows must be, told from all records that took effect,
    in the order of their commits. Where both are None a record is a row of its own: then it
    is enough to count the records. ``sends`` says when records are sent: FIRST, LAST, or never.
    """

    change: Callable[[Rows, Sequence[Record]], tuple[Wrote, ...]] | None = None
    fold: Callable[[Iterable[Record]], Mapping[int, int]] | None = None
    sends: str = ""


def key_of(record: Record) -> int:
    """The key of a record: the first two of a topic have the same one."""
    return record[-1] // 2


def number_of(record: Record) -> int:
    """What a record measures. No sum of some is that of others, until one counts 16 times."""
    incarnation, cuts, offset = record
    return 1 << 4 * (4 * (incarnation - 1 + cuts) + offset)


def _sums(records: Iterable[Record]) -> dict[int, int]:
    sums = dict[int, int]()
    for each in records:
        sums[key_of(each)] = sums.get(key_of(each), 0) + number_of(each)
    return sums


def _added(rows: Rows, records: Sequence[Record]) -> tuple[Wrote, ...]:
    """``metric = metric + n`` for each key of the batch."""
    there, more = dict(rows), _sums(records)
    return tuple(Wrote(key, there.get(key, 0) + n, key not in there) for key, n in more.items())


def _firsts(records: Iterable[Record]) -> dict[int, int]:
    firsts = dict[int, int]()
    for each in records:
        firsts.setdefault(key_of(each), number_of(each))
    return firsts


def _inserted(rows: Rows, records: Sequence[Record]) -> tuple[Wrote, ...]:
    """A row for each key of the batch that has none."""
    there = {key for key, _ in rows}
    new = {key: n for key, n in _firsts(records).items() if key not in there}
    return tuple(Wrote(key, n, new=True) for key, n in new.items())


def merged(rows: Rows, wrote: Iterable[Wrote]) -> Rows:
    """The rows after a commit. What it makes is there beside a row that it had not read."""
    replaced = {each.key: each.value for each in wrote if not each.new}
    remaining = [(key, replaced.get(key, value)) for key, value in rows]
    return (*remaining, *((each.key, each.value) for each in wrote if each.new))


ROWS = Effect()
"""``append`` and ``upsert``: each record is a row, or a change of one."""
TOTALS = Effect(_added, _sums)
"""``aggregate``."""
FIRST_ROWS = Effect(_inserted, _firsts)
"""``insert``."""
AT_LEAST_ONCE = Effect(sends=FIRST)
"""``delivery: at-least-once``."""
AT_MOST_ONCE = Effect(sends=LAST)
"""``delivery: at-most-once``."""
