"""What is left of each key, against plain Python."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.write.keys.settle import NONE, Changes, Folded, earliest, grouped, latest

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Entry:
    key: int
    topic: int
    partition: int
    offset: int
    tombstone: int
    rank: int | None
    has_row: bool
    gone: bool = False

    @property
    def place(self) -> tuple[int, int]:
        return self.topic, self.partition

    @property
    def order(self) -> tuple[tuple[int, ...], tuple[int, int], int]:
        return (0,) if self.rank is None else (1, self.rank), self.place, self.offset


def changes(entries: list[Entry], words: int = 1) -> Changes:
    numbers = np.array([each.key for each in entries], np.uint64)
    shared = numbers % np.uint64(2)  # many keys share the first word
    keys = numbers.reshape(-1, 1) if words == 1 else np.stack([shared, numbers], axis=1)
    return Changes(
        keys=keys,
        row=np.array([n if e.has_row else NONE for n, e in enumerate(entries)], np.int64),
        topic=np.array([each.topic for each in entries], np.int64),
        partition=np.array([each.partition for each in entries], np.int64),
        offset=np.array([e.offset if e.has_row or e.gone else NONE for e in entries], np.int64),
        tombstone=np.array([each.tombstone for each in entries], np.int64),
        gone=np.array([each.gone for each in entries], np.bool_),
        order_by=[pa.array([e.rank if e.has_row or e.gone else None for e in entries], pa.int32())],
    )


def told(entries: list[Entry], found: Folded, *, apart: bool) -> dict[object, tuple[int, int]]:
    result: dict[object, tuple[int, int]] = {}
    for first, newest, tombstone in zip(
        found.first.tolist(), found.newest.tolist(), found.tombstone.tolist(), strict=True
    ):
        each = entries[first]
        result[(each.key, each.place) if apart else each.key] = (newest, tombstone)
    assert len(result) == len(found.first)
    return result


def by_hand(entries: list[Entry], *, apart: bool) -> dict[object, tuple[int, int]]:
    groups: dict[object, list[int]] = defaultdict(list)
    for number, each in enumerate(entries):
        groups[(each.key, each.place) if apart else each.key].append(number)
    result: dict[object, tuple[int, int]] = {}
    for group, numbers in groups.items():
        last: dict[tuple[int, int], int] = defaultdict(lambda: NONE)
        for each in (entries[number] for number in numbers):
            last[each.place] = max(last[each.place], each.tombstone)
        alive = [
            number
            for number in numbers
            if (entries[number].has_row or entries[number].gone)
            and entries[number].offset > last[entries[number].place]
        ]
        best = max(alive, key=lambda number: entries[number].order, default=NONE)
        result[group] = best, max(last.values())
    return result


def entry(key: int, place: tuple[int, int], offset: int, rank: int | None, kind: int) -> Entry:
    """0: a row; 1: a tombstone; 2: a row that came after a tombstone; 3: a deletion in order."""
    tombstone = (NONE, offset, offset - 1, NONE)[kind]
    return Entry(key, *place, offset, tombstone, rank, has_row=kind in (0, 2), gone=kind == 3)


PLACES = st.tuples(st.integers(0, 1), st.integers(0, 2))
ENTRIES = st.lists(
    st.builds(
        entry,
        st.integers(0, 5),
        PLACES,
        st.integers(1, 40),
        st.one_of(st.none(), st.integers(0, 2)),
        st.integers(0, 3),
    ),
    unique_by=lambda each: (each.place, each.offset),
    max_size=30,
)


@given(ENTRIES, st.booleans(), st.integers(1, 2))
def test_the_newest_row_of_each_key_is_left(entries: list[Entry], apart: bool, words: int) -> None:
    found = latest(changes(entries, words), apart=apart)
    assert told(entries, found, apart=apart) == by_hand(entries, apart=apart)


@given(ENTRIES, st.booleans())
def test_the_first_row_of_each_key_is_left(entries: list[Entry], apart: bool) -> None:
    found = earliest(changes(entries), apart=apart)
    for key, (first, tombstone) in told(entries, found, apart=apart).items():
        same = [
            number
            for number, each in enumerate(entries)
            if each.has_row and ((each.key, each.place) if apart else each.key) == key
        ]
        expected = min(same, key=lambda n: (entries[n].place, entries[n].offset), default=NONE)
        assert (first, tombstone) == (expected, NONE)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.integers(1, 2))
def test_groups_are_those_of_equal_keys(pairs: list[tuple[int, int]], words: int) -> None:
    keys = np.array(pairs, np.uint64).reshape(-1, 2)[:, :words]
    first, group = grouped(keys)
    assert len(first) == len({*map(tuple, keys.tolist())})
    assert (keys[first][group] == keys).all()
