"""The rows of a partitioned table by their partition, without Spark."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from rivermouth.protocol.ways import Definition
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.partitions import apart, folder_of_partition
from rivermouth.warehouse.delta.statistics import Leaf, leaves_of, partitions_of
from rivermouth.write.files import data_files
from rivermouth.write.files.bad_records import folder_of
from rivermouth.write.files.compaction import Compaction
from rivermouth.write.files.data_files import DataFile, Files, Folder
from rivermouth.write.files.table import FilesTable, appended

pytestmark = pytest.mark.unit


def texts(kind: str, values: pa.Array) -> list[str | None]:
    rows = pa.table({"p": values, "n": range(len(values))})
    found = {n: p["p"] for p, each, _ in apart(rows, [Leaf(("p",), kind)]) for n in ints(each)}
    return [found[n] for n in range(len(values))]


def ints(rows: pa.Table) -> list[int]:
    assert "p" not in rows.column_names
    return [int(each) for each in rows.column("n").to_pylist()]


US = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("string", pa.array(["a=/ ", "", None, "ü☃"]), ["a=/ ", None, None, "ü☃"]),
        ("boolean", pa.array([True, False, None]), ["true", "false", None]),
        ("byte", pa.array([-128, 7, None], pa.int8()), ["-128", "7", None]),
        ("long", pa.array([2**63 - 1, None]), [str(2**63 - 1), None]),
        ("date", pa.array([-1, 3_000_000], pa.date32()), ["1969-12-31", "10183-09-21"]),
        ("timestamp", pa.array([-1, None], US), ["1969-12-31T23:59:59.999999Z", None]),
        ("timestamp_ntz", pa.array([10**6], pa.timestamp("us")), ["1970-01-01 00:00:01.000000"]),
        (
            "decimal(38,10)",
            pa.array([Decimal("0E-10"), Decimal("-1.5")], pa.decimal128(38, 10)),
            ["0.0000000000", "-1.5000000000"],
        ),
    ],
)
def test_values_are_text_as_the_protocol_of_delta_says(
    kind: str, values: pa.Array, expected: list[str | None]
) -> None:
    assert texts(kind, values) == expected


def test_text_that_is_not_utf_8_is_replaced_as_spark_does() -> None:
    values = pa.array([b"a\xff", b"b"]).view(pa.string())
    assert texts("string", values) == ["a�", "b"]


def test_rows_of_several_columns_stay_in_order_within_their_partition() -> None:
    every = [(n % 3, "ab"[n % 2], n) for n in range(20)]
    columns = dict(zip(("p", "q", "n"), map(list, zip(*every, strict=True)), strict=True))
    leaves = [Leaf(("q",), "string"), Leaf(("p",), "long")]
    found = {tuple(p.items()): ints(each) for p, each, _ in apart(pa.table(columns), leaves)}
    assert found == {
        (("q", q), ("p", str(p))): [n for a, b, n in every if (a, b) == (p, q)]
        for p in range(3)
        for q in "ab"
    }


def test_a_folder_is_named_as_hive_does() -> None:
    named = {"a=": "x/y %:ü", "b": None, "c": "z"}
    assert folder_of_partition(named) == ("a%3D=x%2Fy %25%3Aü/b=__HIVE_DEFAULT_PARTITION__/c=z/")
    assert folder_of_partition({}) == ""
    long = [folder_of_partition({"a": "ü" * 200 + each}) for each in "xy"]
    assert len({*long}) == 2
    assert all(len(each.encode()) < 255 for each in long)


def test_statistics_are_of_data_columns_and_of_clusters_wherever_they_are() -> None:
    kinds = {"p": "string", "a": "long", "b": "long", "c": "long"}
    fields = [{"name": each, "type": kind} for each, kind in kinds.items()]
    table = Definition(
        1,
        7,
        frozenset(),
        {"delta.dataSkippingNumIndexedCols": "1"},
        {"fields": fields},
        partitions=("p",),
        clusters=(("c",),),
    )
    assert leaves_of(table) == (Leaf(("a",), "long"), Leaf(("c",), "long"))
    assert partitions_of(table) == (Leaf(("p",), "string"),)


def written(folder: Folder, *batches: dict[str, list[Any]]) -> list[DataFile]:
    files = Files(folder, 0)
    done = [file for each in batches for file in files.add(pa.RecordBatch.from_pydict(each))]
    return [*done, *files.end()]


def test_a_task_writes_a_file_for_each_value_and_one_more_once_its_rows_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, leaves = Store.of_folder(tmp_path), [Leaf(("n",), "long")]
    folder = Folder(store, leaves, False, [Leaf(("p",), "string")])
    once = written(folder, {"p": ["a", "b"], "n": [1, 2]}, {"p": ["b", None], "n": [3, 4]})
    found = {each.partition["p"]: each for each in once}
    assert {p: json.loads(each.statistics)["maxValues"] for p, each in found.items()} == {
        "a": {"n": 1},
        "b": {"n": 3},
        None: {"n": 4},
    }
    held = pq.read_table(tmp_path / found["b"].name)
    assert held.to_pydict() == {"n": [2, 3]}
    assert DataFile.from_json(found["b"].to_json()) == found["b"]

    monkeypatch.setattr(data_files, "GROUP_ROWS", 2)
    twice = written(folder, {"p": ["a", "b"], "n": [1, 2]}, {"p": ["b", "a"], "n": [3, 4]})
    assert sorted(str(each.partition["p"]) for each in twice) == ["a", "a", "b", "b"]


def test_a_task_that_fails_leaves_no_file_of_any_partition(tmp_path: Path) -> None:
    folder = Folder(Store.of_folder(tmp_path), [], False, [Leaf(("p",), "string")], file_bytes=1)
    files = Files(folder, 0)
    assert len(files.add(pa.RecordBatch.from_pydict({"p": ["a", "b"], "n": [1, 2]}))) == 2
    files.discard()
    assert not [*tmp_path.rglob("*.parquet")]


def test_a_file_ends_at_the_size_that_the_table_asks_for(tmp_path: Path) -> None:
    batch = {"n": [*range(1000)], "at": [datetime(2026, 1, 1, tzinfo=timezone.utc)] * 1000}
    [one] = written(Folder(Store.of_folder(tmp_path), [], False), batch, batch)
    assert one.rows == 2000
    small = written(Folder(Store.of_folder(tmp_path), [], False, file_bytes=1000), batch, batch)
    assert [each.rows for each in small] == [1000, 1000]


def test_files_of_one_partition_are_joined_and_no_others(tmp_path: Path) -> None:
    columns = pa.schema([("p", pa.string()), ("n", pa.int64())])
    DeltaTable.create(tmp_path, columns, partition_by=["p"])
    table = FilesTable(Store.of_folder(tmp_path), "p", files=True)
    table.newest()
    into = folder_of(table.store, table.definition())
    for number in range(16):
        made = Files(into, 0)
        made.add(pa.RecordBatch.from_pylist([{"p": "ab"[number % 2], "n": number}], columns))
        table.after_others(appended(made.end()))

    for _ in range(3):
        jobs = Compaction(table.log, partial(Files, into, 0))
        jobs.after_a_commit(table.also)
        jobs.close()

    read = QueryBuilder().register("t", DeltaTable(tmp_path))
    rows = pa.table(read.execute("SELECT p, n FROM t ORDER BY n").read_all()).to_pylist()
    assert rows == [{"p": "ab"[n % 2], "n": n} for n in range(16)]
    assert sorted(each.partition["p"] or "" for each in table.log.state.current.values()) == [
        "a",
        "b",
    ]
