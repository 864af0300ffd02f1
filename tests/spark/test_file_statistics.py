"""Statistics of our data files are those that Spark's Delta gives of the same rows."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rivermouth.config.source import kafka_struct
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.statistics import leaves_of
from rivermouth.write.files.data_files import DataFile, Files, Folder
from tests.spark.conftest import Bench

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LONG = "x" * 31
STRUCT = "STRUCT<x: BIGINT, y: STRUCT<z: STRING, q: ARRAY<INT>>, b: BINARY>"
KAFKA = kafka_struct(["key", "headers"])
CASES: dict[str, tuple[str, list[str]]] = {
    "whole numbers": (
        "TINYINT, SMALLINT, INT, BIGINT",
        ["-128, 32767, null, 9223372036854775807", "127, -32768, 5, -9223372036854775808"],
    ),
    "floats": (
        "FLOAT, DOUBLE, FLOAT, DOUBLE",
        ["'1.1', '1e-7', '16777216', '1e300'", "'-3.4e38', '123456789.1', null, '0.1'"],
    ),
    "not a number and infinite": (
        "FLOAT, DOUBLE, FLOAT, DOUBLE",
        ["'NaN', 'NaN', 'Infinity', '-Infinity'", "1, 'NaN', 'NaN', null", "-1, null, 0, 1"],
    ),
    "zeros with a sign": ("FLOAT, DOUBLE", ["'-0.0', '-0.0'"]),
    "zeros with both signs": ("DOUBLE, DOUBLE", ["'-0.0', '0.0'", "'0.0', '-0.0'"]),
    "decimals": (
        "DECIMAL(9,2), DECIMAL(18,0), DECIMAL(38,10), DECIMAL(38,38)",
        [
            "1.50, 123456789012345678, -9999999999999999999999999999.9999999999, 0.1",
            "-0.01, null, 0, -0.00000000000000000000000000000000000001",
        ],
    ),
    "days": ("DATE", ["'0001-01-01'", "'9999-12-31'", "'1969-12-31'"]),
    "times": (
        "TIMESTAMP, TIMESTAMP, TIMESTAMP_NTZ",
        [
            "'1969-12-31 23:59:59.999999', '0001-01-01', '1600-02-29 00:00:00.000001'",
            "'1969-12-31 23:59:59.000001', '9999-12-31 23:59:59.999999', '2026-01-01'",
        ],
    ),
    "texts at the boundary": (
        "STRING, STRING, STRING, STRING",
        [
            f"'{LONG}ab', '{LONG}a', '{LONG}\x7f\x7fz', '{LONG}\U0010ffffz'",
            f"'{LONG}é', '{LONG}\U0001f600\U0001f600', '{LONG}', '{LONG}'",
        ],
    ),
    "texts beyond ASCII": (
        "STRING, STRING, STRING, STRING",
        [
            f"'{'é' * 40}', '{'😀' * 20}', '{LONG}x\U0010ffff', '{LONG}x{chr(0x10FFFF) * 20}'",
            f"'{'é' * 31}😀e', '\ufffd', '{LONG}x\uffff\uffff', '\U00010000'",
        ],
    ),
    "texts with signs of JSON": ("STRING, STRING", ["'a\"b', '\u2028/'", "'\t\n\u0001', ''"]),
    "types that are only counted": (
        "BOOLEAN, BINARY, ARRAY<STRING>, MAP<STRING, BIGINT>",
        ["true, X'00', array('a', null), map('a', 1L)", "null, null, null, null"],
    ),
    "structs": (
        f"{STRUCT}, STRUCT<k: BOOLEAN>, STRUCT<k: STRUCT<n: INT>>",
        [
            "named_struct('x', 1L, 'y', named_struct('z', 'a', 'q', array(1)), 'b', X'00'),"
            " named_struct('k', true), null",
            "named_struct('x', null, 'y', null, 'b', null), null, null",
            "null, null, null",
        ],
    ),
    "what Kafka tells": (
        KAFKA,
        [
            "named_struct('topic', 't', 'partition', 0, 'offset', 7L, 'timestamp', '2026-01-01',"
            " 'key', X'00', 'headers', array(named_struct('key', 'a', 'value', X'01'), null))",
            "named_struct('topic', 't', 'partition', 1, 'offset', 9L, 'timestamp', '2026-01-02',"
            " 'key', null, 'headers', null)",
        ],
    ),
    "nothing but null": ("STRING, DOUBLE, TIMESTAMP, DECIMAL(9,2)", ["null, null, null, null"]),
}


@pytest.mark.takes_long(
    "floats",
    "decimals",
    "not a number and infinite",
    "zeros with both signs",
    "times",
    "texts beyond ASCII",
    "structs",
    "zeros with a sign",
    "days",
    "texts at the boundary",
    "texts with signs of JSON",
    "whole numbers",
    "nothing but null",
    "types that are only counted",
)
@pytest.mark.parametrize("case", CASES)
def test_they_are_those_of_spark(bench: Bench, case: str) -> None:
    types, rows = CASES[case]
    assert_same(bench, types, rows, "")


@pytest.mark.takes_long("4", "0", "3", "32")
@pytest.mark.parametrize("indexed", ["-1", "0", "3", "4", "32"])
def test_they_are_of_as_many_columns(bench: Bench, indexed: str) -> None:
    more = ", ".join(["INT"] * 40)
    values = ", ".join(map(str, range(40)))
    structs = "named_struct('x', 1L, 'y', named_struct('z', 'a', 'q', array(1)), 'b', X'00')"
    property_ = f"TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '{indexed}')"
    assert_same(bench, f"BOOLEAN, {STRUCT}, {more}", [f"true, {structs}, {values}"], property_)


def test_they_say_that_bounds_are_tight_where_rows_may_be_marked_as_deleted(bench: Bench) -> None:
    property_ = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    assert_same(bench, "INT", ["1"], property_)


def assert_same(bench: Bench, types: str, rows: list[str], properties: str) -> None:
    kinds = split(types)
    schema = ", ".join(f"c{at} {kind}" for at, kind in enumerate(kinds))
    table = bench.address("by_spark")
    bench.spark.sql(f"CREATE TABLE {table.sql} ({schema}) USING delta {properties}")
    values = [f"SELECT {', '.join(map(cast, split(row), kinds))}" for row in rows]
    bench.spark.sql(f"INSERT INTO {table.sql} {' UNION ALL '.join(values)}")
    bench.spark.sql(f"OPTIMIZE {table.sql}").collect()  # into one file, whoever wrote how many
    handle = DeltaTable(table.path)
    [theirs] = [each for each in added(handle) if each["dataChange"] is False or len(rows) == 1]

    [ours] = written(handle, bench.folder)

    assert read(ours.statistics) == read(theirs["stats"])
    assert pq.read_schema(bench.folder / ours.name).names == [f"c{at}" for at in range(len(kinds))]


def split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth = [""], 0
    for each in text:
        depth += (each in "(<") - (each in ")>")
        if each == "," and not depth:
            parts.append("")
        else:
            parts[-1] += each
    return [each.strip() for each in parts]


def cast(value: str, kind: str) -> str:
    return f"CAST({value} AS {kind})"


def added(table: DeltaTable) -> list[dict[str, Any]]:
    log = Path(table.table_uri.removeprefix("file://"), "_delta_log")
    newest = max(log.glob("*.json"))
    actions = map(json.loads, newest.read_text("utf-8").strip().split("\n"))
    return [each["add"] for each in actions if "add" in each]


def written(table: DeltaTable, folder: Path) -> list[DataFile]:
    """The rows of a table once more, by ours."""
    definition = DeltaLog.of_folder(Path(table.table_uri.removeprefix("file://"))).definition()
    assert definition is not None
    into = Folder(Store.of_folder(folder), leaves_of(definition), definition.tight)
    files = Files(into, 0)
    [file] = table.file_uris()
    for batch in pq.read_table(file).to_batches():
        assert not files.add(batch)
    return files.end()


read = partial(json.loads, parse_float=Decimal)
