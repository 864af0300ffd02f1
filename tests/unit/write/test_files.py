"""The files of a task, without Spark: their rows and counts, and what is left behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rivermouth.errors import BatchFailed
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange, TopicPartition
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.statistics import Leaf
from rivermouth.write.files import data_files
from rivermouth.write.files.bad_records import LEAVES, QuarantineTarget
from rivermouth.write.files.counting import Counted, counted
from rivermouth.write.files.data_files import Folder
from rivermouth.write.files.writing import Writing, Written, collected
from rivermouth.write.landings.files import worth
from tests.builders import span

pytestmark = pytest.mark.unit

KAFKA = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
DECODED = pa.schema(
    [
        ("row", pa.struct([("n", pa.int64())])),
        ("_kafka", KAFKA),
        ("code", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
AT = datetime(2026, 1, 2, tzinfo=timezone.utc)


def batch(*offsets: int, partition: int = 0, bad: tuple[int, ...] = ()) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {
            "row": None if each in bad else {"n": each},
            "_kafka": {"topic": "t", "partition": partition, "offset": each, "timestamp": AT},
            "code": "RM603" if each in bad else None,
            "key": b"k" if each in bad else None,
            "value": b"v" if each in bad else None,
        }
        for each in offsets
    ]
    return pa.RecordBatch.from_pylist(rows, DECODED)


def run(folder: Path, *batches: pa.RecordBatch) -> Written:
    target = Folder(Store.of_folder(folder / "bad"), LEAVES, tight=False)
    returned = of(folder, target)(batches)
    return collected(row for each in returned for row in each.to_pylist())


def of(folder: Path, target: Folder) -> Any:
    (folder / "good").mkdir(exist_ok=True)
    good = Folder(Store.of_folder(folder / "good"), (Leaf(("n",), "long"),), tight=False)
    return Writing(good, QuarantineTarget(target, "c-1", "p", 7, {"RM603": "not JSON"}))


def test_a_task_without_rows_writes_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, batch()) == Written((), (), Counted(), ())
    assert not list(tmp_path.rglob("*.parquet"))
    assert not (tmp_path / "bad").exists()


def test_good_rows_are_one_file_with_counts_by_partition(tmp_path: Path) -> None:
    found = run(tmp_path, batch(1, 2), batch(5, partition=1))
    [only] = found.good

    assert found.counted == Counted(Counter({("t", 0): 2, ("t", 1): 1}))
    assert only.rows == 3
    assert json.loads(only.statistics)["maxValues"] == {"n": 5}
    path = tmp_path / "good" / only.name
    assert path.stat().st_size == only.size
    rows = pq.read_table(path).to_pylist()
    assert [(row["n"], row["_kafka"]["offset"]) for row in rows] == [(1, 1), (2, 2), (5, 5)]
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_distinct_values_are_not_all_in_a_dictionary(tmp_path: Path) -> None:
    numbers = 20_000
    [only] = run(tmp_path, batch(*range(numbers))).good
    held = pq.ParquetFile(tmp_path / "good" / only.name).metadata.row_group(0).column(0)
    assert held.total_uncompressed_size < 1.15 * 8 * numbers


def test_a_row_group_bounds_no_floating_numbers_since_a_nan_would_be_beyond(tmp_path: Path) -> None:
    kind = pa.struct([("n", pa.int64()), ("f", pa.float64())])
    columns = {"s": kind, "f": pa.float32(), "t": pa.string(), "l": pa.list_(pa.float64())}
    assert list(data_files.bounded(pa.schema(columns))) == ["s.n", "t"]

    rows = pa.RecordBatch.from_pylist(
        [{"s": {"n": 1, "f": float("nan")}, "f": 0.5, "t": "a", "l": [1.5]}], pa.schema(columns)
    )
    files = data_files.Files(Folder(Store.of_folder(tmp_path), (), tight=False), 0)
    files.add(rows)
    [only] = files.end()
    group = pq.ParquetFile(tmp_path / only.name).metadata.row_group(0)
    held = [group.column(each) for each in range(group.num_columns)]
    bounded = {each.path_in_schema for each in held if each.is_stats_set}
    assert bounded == {"s.n", "t"}


def test_bad_rows_go_apart_whole_and_with_their_reason(tmp_path: Path) -> None:
    found = run(tmp_path, batch(1, 2, 3, bad=(2,)), batch(4, bad=(4,), partition=1))

    [good], [bad], counts = found.good, found.bad, found.counted
    assert (good.rows, bad.rows) == (2, 2)
    assert (counts.good, counts.bad) == ({("t", 0): 2, ("t", 1): 0}, {("t", 0): 1, ("t", 1): 1})
    first, second = pq.read_table(tmp_path / "bad" / bad.name).to_pylist()
    assert datetime.now(timezone.utc) >= first.pop("quarantined_at") > AT
    assert first == {
        "commit": "c-1",
        "pipeline": "p",
        "sequence": 7,
        "topic": "t",
        "partition": 0,
        "offset": 2,
        "timestamp": AT,
        "key": b"k",
        "value": b"v",
        "code": "RM603",
        "reason": "not JSON",
    }
    assert second["partition"] == 1
    table = DeltaTable(str(tmp_path / "bad"))
    assert [each.name for each in table.schema().fields] == [*list(first)[:11], "quarantined_at"]
    assert not table.file_uris(), "no commit names them yet"


@pytest.mark.parametrize(
    ("limit", "most"), [("GROUP_ROWS", 2), ("GROUP_BYTES", batch(1).nbytes + 1)]
)
def test_a_file_ends_with_the_row_group_that_makes_it_large_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(data_files, limit, most)
    monkeypatch.setattr(data_files, "FILE_BYTES", 1)
    found = run(tmp_path, batch(1), batch(2), batch(3)).good

    assert [each.rows for each in found] == [2, 1]
    assert [json.loads(each.statistics)["minValues"]["n"] for each in found] == [1, 3]
    assert len({each.name for each in found}) == 2


@pytest.mark.parametrize("completed", [0, 4])
def test_a_task_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, completed: int
) -> None:
    if completed:
        monkeypatch.setattr(data_files, "GROUP_ROWS", 1)
        monkeypatch.setattr(data_files, "FILE_BYTES", 1)

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(1, 2, bad=(1,))
        yield batch(3, 4, bad=(4,))
        assert len(list(tmp_path.rglob("*.parquet"))) == completed
        raise OSError("no space left")

    writing = of(tmp_path, Folder(Store.of_folder(tmp_path / "bad"), LEAVES, tight=False))
    with pytest.raises(OSError, match="no space"):
        list(writing(failing()))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_file_that_cannot_be_completed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fails)
    with pytest.raises(OSError, match="no space"):
        run(tmp_path, batch(1, 2))
    assert not list(tmp_path.rglob("*.parquet"))


def counts(good: dict[int, int], bad: dict[int, int]) -> Counted:
    """What a task has counted by partition."""
    found = Counted()
    found.good.update({("t", partition): number for partition, number in good.items()})
    found.bad.update({("t", partition): number for partition, number in bad.items()})
    return found


def test_counts_are_the_sums_of_all_tasks_in_the_order_of_the_ranges() -> None:
    found = counts({0: 2, 1: 1}, {})
    found.update(Counted.from_json(counts({0: 3}, {1: 4}).to_json()))
    ranges = (span(10, 16), span(0, 5, 1), span(7, 9, 2))
    assert found.of(ranges, "p") == (RowCounts(5, 0), RowCounts(1, 4), RowCounts(0, 0))


@pytest.mark.parametrize("found", [counts({0: 7}, {}), counts({}, {3: 1}), counts({0: 5}, {0: 2})])
def test_counts_that_cannot_be_right_are_refused(found: Counted) -> None:
    with pytest.raises(BatchFailed, match="other records"):
        found.of((span(10, 16),), "p")


def test_a_quarantine_whose_creation_was_killed_is_created(tmp_path: Path) -> None:
    (tmp_path / "bad" / "_delta_log").mkdir(parents=True)
    found = run(tmp_path, batch(0, 1, bad=(1,)))
    assert [each.rows for each in found.bad] == [1]
    made = DeltaTable(str(tmp_path / "bad"))
    assert made.metadata().configuration == {"delta.checkpointInterval": "50"}


def test_a_file_that_cannot_be_begun_leaves_nothing(tmp_path: Path) -> None:
    unknown = pa.schema([("x", pa.dense_union([pa.field("a", pa.int8())]))])
    with pytest.raises(pa.ArrowException):
        data_files._OpenFile(Folder(Store.of_folder(tmp_path), (), tight=False), 0, unknown, {})
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "places",
    [
        [],
        [("t", 0)],
        [("t", 3)] * 5,
        [("t", 0), ("t", 1)],
        [("t", 0), ("u", 0), ("t", 0)],
        [("t", 0), ("t", 0), ("u", 1), ("u", 1), ("t", 1)],
    ],
    ids=str,
)
def test_records_are_counted_by_topic_and_partition(places: list[tuple[str, int]]) -> None:
    rows = [{"topic": topic, "partition": partition} for topic, partition in places]
    assert counted(pa.array(rows, KAFKA)) == Counter(places)
    beside = [{"topic": "x", "partition": 7}]
    assert counted(pa.array([*beside, *rows, *beside], KAFKA)[1:-1]) == Counter(places)


@pytest.mark.parametrize(
    ("spans", "record_bytes", "tasks"),
    [
        ([0], 0.0, 1),
        ([10], 0.0, 1),
        ([9_999], 0.0, 1),
        ([10_000], 0.0, 2),
        ([20_000] * 4, 30.0, 16),
        ([100], float(1 << 20), 100),
        ([1] * 2_000 + [0] * 500, 0.0, 125),
    ],
)
def test_a_batch_is_worth_tasks_by_records_by_bytes_and_by_partitions(
    spans: list[int], record_bytes: float, tasks: int
) -> None:
    ranges = [
        OffsetRange(TopicPartition("t", number), 7, 7 + span) for number, span in enumerate(spans)
    ]
    assert worth(ranges, record_bytes) == tasks
