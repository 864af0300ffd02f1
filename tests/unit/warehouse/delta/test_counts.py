"""Counting rows of ranges in data files."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Counts, Entry, RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.counts import count_rows, with_counts
from rivermouth.warehouse.delta.log import DeltaLog
from tests.builders import entry_after, span

pytestmark = pytest.mark.unit

Row = tuple[str, int, int]  # topic, partition, offset


def data(rows: list[Row]) -> pa.Table:
    """Rows of a target table, by the coordinates of their records."""
    kafka = pa.array(
        [{"topic": topic, "partition": n, "offset": offset} for topic, n, offset in rows],
        pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]),
    )
    return pa.table({"id": pa.array(range(len(rows)), pa.int64()), "_kafka": kafka})


def parquet(path: Path, rows: list[Row]) -> Path:
    pq.write_table(data(rows), path)
    return path


def here(*offsets: int, partition: int = 0, topic: str = "t") -> list[Row]:
    return [(topic, partition, offset) for offset in offsets]


@pytest.mark.parametrize(
    ("name", "files", "ranges", "counts"),
    [
        ("no files", [], [span(0, 5)], [0]),
        ("no ranges", [here(1)], [], []),
        ("an empty file", [[]], [span(0, 5)], [0]),
        ("both ends of a half-open range", [here(4, 5, 9, 10)], [span(5, 10)], [2]),
        ("ranges that touch", [here(4, 5)], [span(0, 5), span(5, 9)], [1, 1]),
        ("several files, any order", [here(7, 1), here(3)], [span(0, 9)], [3]),
        ("holes are no records", [here(0, 8)], [span(0, 9)], [2]),
        ("an empty range", [here(5)], [span(5, 5)], [0]),
        (
            "other partitions and topics",
            [here(1) + here(1, 2, partition=1) + here(1, topic="u")],
            [span(0, 9), span(0, 9, 1), span(0, 9, 0, "u"), span(0, 9, 2)],
            [1, 2, 1, 0],
        ),
        ("in the order of the ranges", [here(1, 6, 7)], [span(5, 9), span(0, 5)], [2, 1]),
    ],
)
def test_rows_are_counted_by_range(
    tmp_path: Path, name: str, files: list[list[Row]], ranges: list[OffsetRange], counts: list[int]
) -> None:
    paths = [parquet(tmp_path / f"{n}.parquet", rows).name for n, rows in enumerate(files)]
    assert count_rows(Store.of_folder(tmp_path), paths, ranges) == tuple(
        RowCounts(each, 0) for each in counts
    ), name


@given(
    st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 2), st.integers(0, 30)), max_size=40),
    st.lists(st.integers(0, 30), max_size=5).map(sorted),
)
def test_counting_agrees_with_counting_by_hand(rows: list[Row], cuts: list[int]) -> None:
    ranges = [
        span(start, until, partition, topic)
        for topic in "tu"
        for partition in range(3)
        for start, until in pairwise(cuts)
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(data(rows), sink, row_group_size=7)
    expected = [
        sum(
            (topic, partition) == (each.topic, each.partition)
            and each.from_offset <= offset < each.until_offset
            for topic, partition, offset in rows
        )
        for each in ranges
    ]
    by_place = dict(zip(ranges, expected, strict=True))
    store = Store.in_memory()
    store.create("rows", sink.getvalue().to_pybytes())
    counted = count_rows(store, ["rows"], list(by_place))
    assert counted == tuple(RowCounts(each, 0) for each in by_place.values())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Version 0 and 1 hold the records of two entries."""
    path = tmp_path / "a b"
    write_deltalake(str(path), data(here(0, 1, 4)))
    write_deltalake(str(path), data(here(5, 6)), mode="append")
    return path


FIRST = entry_after(None, span(0, 5))
SECOND = entry_after(FIRST, span(5, 9))


def unknown(version: int, entry: Entry) -> Recorded:
    return Recorded(version, 0, replace(entry, rows=None))


def counts(found: list[Recorded]) -> list[Counts | None]:
    return [each.entry.rows for each in found]


def test_an_entry_is_counted_in_the_files_of_its_own_commit(table: Path) -> None:
    found = with_counts(DeltaLog.of_folder(table), [unknown(0, FIRST), unknown(1, SECOND)])
    assert counts(found) == [(RowCounts(3, 0),), (RowCounts(2, 0),)]
    assert counts(with_counts(DeltaLog.of_folder(table), [unknown(1, SECOND)])) == [
        (RowCounts(2, 0),)
    ]


def test_what_an_entry_says_of_itself_is_kept(table: Path) -> None:
    told = Recorded(0, 0, replace(FIRST, rows=(RowCounts(4, 1),)))
    found = with_counts(DeltaLog.of_folder(table), [told, unknown(1, SECOND)])
    assert counts(found) == [(RowCounts(4, 1),), (RowCounts(2, 0),)]
    assert with_counts(DeltaLog.of_folder(table), []) == []


def test_files_that_vacuum_took_are_counted_in_the_table_as_it_is(table: Path) -> None:
    DeltaTable(str(table)).optimize.compact()
    DeltaTable(str(table)).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert not any((table / each.path).exists() for each in DeltaLog.of_folder(table).added(0))
    found = with_counts(DeltaLog.of_folder(table), [unknown(0, FIRST), unknown(1, SECOND)])
    assert counts(found) == [(RowCounts(3, 0),), (RowCounts(2, 0),)]


def test_a_file_that_is_gone_from_the_table_itself_is_said_to_be_uncountable(table: Path) -> None:
    (table / DeltaLog.of_folder(table).added(0)[0].path).unlink()
    with pytest.raises(ProjectionFailed, match="the commits stand"):
        with_counts(DeltaLog.of_folder(table), [unknown(0, FIRST)])


def test_an_entry_of_empty_ranges_counts_nothing(table: Path) -> None:
    born = entry_after(None, span(3, 3), span(0, 0, 1))
    assert counts(with_counts(DeltaLog.of_folder(table), [unknown(0, born)])) == [
        (RowCounts(0, 0), RowCounts(0, 0))
    ]
