"""Buckets and series as tables of values, and that no record is lost on the way to the page."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import pytest

from rivermouth.operate.history import Event
from rivermouth.protocol.entry import RowCounts
from rivermouth.report.buckets import Buckets, widths
from rivermouth.report.series import (
    Limits,
    Series,
    Weight,
    as_columns,
    difference,
    heat,
    positions,
)
from tests.builders import TOPIC, entry_after, record_of_entry, span
from tests.builders import position as standing

pytestmark = pytest.mark.unit

ROOMY = Limits(buckets=200, cells=2_400, versions=20)


def test_each_width_is_a_multiple_of_the_one_before() -> None:
    known = [*islice(widths(), 20)]
    assert all(wide % narrow == 0 and wide > narrow for narrow, wide in pairwise(known))


@pytest.mark.parametrize(
    ("times", "width", "found"),
    [
        ([], 1_000, []),
        ([5_500], 1_000, [1]),
        ([5_500, 5_999, 7_000], 1_000, [2, None, 1]),
        ([7_000, 5_999, 5_500], 1_000, [2, None, 1]),
        ([0, 4_000, 5_000], 5_000, [2, 1]),
        ([3_600_000, 0], 1_800_000, [1, None, 1]),
    ],
)
def test_buckets_become_as_wide_as_they_must(
    times: list[int], width: int, found: list[int | None]
) -> None:
    made: Buckets[Counter[str]] = Buckets(4, Counter.update)
    for each in times:
        made.put(each, Counter(n=1))
    assert made.width_ms == width
    assert [None if each is None else each["n"] for each in made.dense()] == found


def test_whatever_comes_in_whatever_order_the_sums_are_the_same() -> None:
    draw = random.Random(7)
    for _ in range(200):
        times = [draw.randrange(10 ** draw.randrange(3, 12)) for _ in range(draw.randrange(1, 60))]
        made: Buckets[Counter[str]] = Buckets(20, Counter.update)
        for each in times:
            made.put(each, Counter(n=1))
        cells = [(each or Counter())["n"] for each in made.dense()]
        assert sum(cells) == len(times)
        assert len(cells) <= 20
        expected = Counter((each - made.from_ms) // made.width_ms for each in times)
        assert {n: each for n, each in enumerate(cells) if each} == dict(expected)


def taken(*commits: tuple[int, Any, Weight], limits: Limits = ROOMY, whole: bool = True) -> Series:
    """A series of commits, the oldest first: time in s, the ranges of an entry, its weight."""
    entry, told = None, []
    for version, (at, ranges, weight) in enumerate(commits):
        entry = entry_after(entry, *ranges)
        record = replace(record_of_entry(version, entry), timestamp_ms=at * 1000)
        told.append((Event(record, "batch", entry, True), weight))
    series = Series(limits)
    for event, weight in reversed(told):
        series.take(event, weight)
    series.end(whole)
    return series


def test_a_series_tells_records_bytes_lag_and_the_time_between() -> None:
    found = as_columns(
        taken(
            (100, [span(0, 10)], Weight(size=50, newest_ms=99_250)),
            (101, [span(10, 14), span(0, 2, 1)], Weight(size=7, newest_ms=90_000)),
            (101, [span(14, 15)], Weight(took_ms=1_500)),
            (104, [], Weight(newest_ms=1)),
        ).sums
    )
    assert found == {
        "from": 100,
        "width": 1,
        "records": [10, 7, 0, 0, 0],
        "bad": [0] * 5,
        "bytes": [50, 7, 0, 0, 0],
        "commits": [1, 2, 0, 0, 1],
        "lag": [0.75, 11, None, None, None],
        "between": [None, 1, None, None, 3],
        "took": [None, 1.5, None, None, None],
    }


def test_records_that_nobody_counted_are_rows_of_the_files_or_else_offsets() -> None:
    entry = replace(entry_after(None, span(0, 10)), rows=None)
    for weight, records in ((Weight(rows=9), 9), (Weight(rows=None), 10)):
        series = Series(ROOMY)
        series.take(Event(record_of_entry(1, entry), "batch", entry, True), weight)
        assert (series.totals.records, series.totals.uncounted) == (records, records)


def test_bad_lost_and_taken_back_records_are_counted_apart() -> None:
    ranges = (span(0, 10), span(0, 5, 1))
    counts = (RowCounts(6, 3, 1), RowCounts(0, 0))
    entry = replace(entry_after(None, *ranges), rows=counts, lost=ranges[1:])
    series = Series(ROOMY)
    series.take(Event(record_of_entry(1, entry), "loss recorded", entry, False), Weight())
    totals = series.totals
    assert (totals.records, totals.bad, totals.skipped, totals.lost) == (10, 3, 1, 5)
    assert (totals.offsets, totals.taken_back) == (15, 1)
    assert {name: each.records for name, each in series.bad.items()} == {entry.commit: 3}
    assert [each.what for each in series.notable] == ["loss recorded"]


def test_the_heat_map_shows_the_partitions_with_most_offsets_and_counts_the_others() -> None:
    series = taken(
        (100, [span(0, 10), span(0, 500, 1), span(0, 20, 2)], Weight()),
        (101, [span(10, 15)], Weight()),
        limits=Limits(buckets=60, cells=4, versions=5),
    )
    assert heat(series) == ([(f"{TOPIC}-1", 500, [500, 0]), (f"{TOPIC}-2", 20, [20, 0])], 1, 15)


def test_commits_that_change_columns_are_told_with_what_they_did() -> None:
    columns = [("a",), None, ("a", "b"), ("a", "b"), ("b",)]
    for whole, first in ((True, "added a"), (False, "not compared")):
        series = taken(*((100, [], Weight(columns=each)) for each in columns), whole=whole)
        told = [(event.record.version, what) for event, what in series.schema]
        assert told == [(4, "dropped a"), (2, "added b"), (0, first)]


def test_positions_are_short() -> None:
    entry = replace(entry_after(None), position=standing(5, 1_000, 7))
    assert positions(entry, 3) == "t 0: 5, 1: 1,000, 2: 7"
    assert positions(entry, 1) == "t 0: 5, and 2 more"
    assert difference(("a",), ("a",)) == ""


def test_a_commit_is_weighed_by_its_actions() -> None:
    stats = {"numRecords": 4, "maxValues": {"_kafka": {"timestamp": "2026-01-01T00:00:01.500Z"}}}
    schema = '{"type":"struct","fields":[{"name":"id"},{"name":"_kafka"}]}'
    added = [{"add": {"path": "a", "size": 10, "stats": json.dumps(stats)}}]
    assert Weight.of(added) == Weight(10, 4, 1_767_225_601_500)
    assert Weight.of([*added, {"add": {"path": "b", "size": 5}}]).rows is None
    info = {"commitInfo": {"operationMetrics": {"executionTimeMs": "120"}}}
    told = Weight.of([info, {"metaData": {"schemaString": schema}}])
    assert told == Weight(rows=0, took_ms=120, columns=("id", "_kafka"))


@pytest.mark.parametrize(
    ("pipelines", "limits"),
    [(1, Limits(200, 2_400, 20)), (10, Limits(200, 1_500, 20)), (100, Limits(50, 150, 3))],
)
def test_the_more_pipelines_the_less_is_told_of_each(pipelines: int, limits: Limits) -> None:
    assert Limits.of(pipelines) == limits
