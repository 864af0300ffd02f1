"""Tables that are laid out by the configuration, and the files that tasks write for them."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.protocol.ways import AS_FILES, replaced, way_into
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landings.files import FilesLanding
from tests.spark.conftest import Bench, RawRow
from tests.spark.files_table import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KINDS = {
    "s": "STRING",
    "b": "BOOLEAN",
    "d": "DATE",
    "t": "TIMESTAMP",
    "z": "TIMESTAMP_NTZ",
    "m": "DECIMAL(12,2)",
    "i8": "TINYINT",
    "i": "INT",
    "l": "BIGINT",
}
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
VALUES: list[dict[str, Any]] = [
    {
        "s": "a/b=c %20 ü ☃\n'",
        "b": True,
        "d": "2026-01-02",
        "t": "2026-01-02T03:04:05.678901Z",
        "z": "2026-01-02T03:04:05",
        "m": "-12.50",
        "i8": -5,
        "i": 7,
        "l": 2**53,
    },
    {"s": "", "b": False, "d": "1582-10-04", "t": "0001-01-01T00:00:00Z"},
    {},
]
SEEN = [
    (
        "a/b=c %20 ü ☃\n'",
        True,
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc),
        datetime(2026, 1, 2, 3, 4, 5),
        Decimal("-12.50"),
        -5,
        7,
        2**53,
    ),
    (None, False, date(1582, 10, 4), datetime(1, 1, 1, tzinfo=timezone.utc), *[None] * 5),
    (None,) * 9,
]


def laid_out(bench: Bench, columns: str, **target: Any) -> Table:
    pipeline = Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": columns,
            "target": {"table": "bronze.numbers", **target},
        }
    )
    site = bench.site(pipeline, "numbers")
    create_target(bench.spark, pipeline, site.address)
    return Table(bench, "numbers", pipeline, FilesLanding(site))


def records(*values: dict[str, Any]) -> list[RawRow]:
    texts = [json.dumps(each, ensure_ascii=False).encode() for each in values]
    return [(None, text, number % 2, number) for number, text in enumerate(texts)]


def micros(value: object) -> object:
    """A time as microseconds since 1970, in UTC; anything else as it is."""
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)


def files_read(table: Table, where: str) -> int:
    """How many files Spark has to open for the rows that fulfil a condition."""
    return len(table.bench.address("numbers").read(table.bench.spark).where(where).inputFiles())


def test_each_type_of_a_partition_is_read_as_it_was_sent(bench: Bench) -> None:
    columns = ", ".join([*(f"{name} {kind}" for name, kind in KINDS.items()), "n BIGINT"])
    table = laid_out(bench, columns, partition_by=tuple(KINDS))
    table.land(records(*({**each, "n": n} for n, each in enumerate(VALUES))))

    assert table.ways() == ["driver"]
    found = table.bench.address("numbers").read(bench.spark).orderBy("n")
    instants = {"t": F.unix_micros("t"), "z": F.unix_micros(F.col("z").cast("timestamp"))}
    found = found.select(*(instants.get(each, F.col(each)) for each in KINDS))
    assert [tuple(row) for row in found.collect()] == [tuple(map(micros, row)) for row in SEEN]
    read = QueryBuilder().register("t", DeltaTable(str(table.path)))
    asked = pa.table(read.execute(f"SELECT {', '.join(KINDS)} FROM t ORDER BY n").read_all())
    assert [tuple(row.values()) for row in asked.to_pylist()] == SEEN


def test_a_task_writes_a_file_for_each_partition_and_readers_pass_over_the_others(
    bench: Bench,
) -> None:
    table = laid_out(bench, "n BIGINT, k STRING", partition_by=("k",))
    sent = records(*({"n": n, "k": "abc"[n % 3]} for n in range(30)))
    table.land(sent, tasks=1)
    table.sql("INSERT INTO {table} (n, k) VALUES (100, 'a')")
    table.land(sent, tasks=1)

    assert table.ways() == ["driver", "spark", "driver"]
    for version in (1, 3):
        added = {each.partition["k"]: each for each in table.log.added(version)}
        assert sorted(map(str, added)) == ["a", "b", "c"]
        said = json.loads(str(added["b"].statistics))
        assert (said["minValues"]["n"], said["maxValues"]["n"], said["numRecords"]) == (1, 28, 10)
        assert "k" not in said["nullCount"]
    assert files_read(table, "k = 'b'") == 2
    assert files_read(table, "k = 'a'") == 3
    counted = table.sql("SELECT k, count(*) AS c, sum(n) AS s FROM {table} GROUP BY k ORDER BY k")
    assert [tuple(row) for row in counted] == [("a", 21, 370), ("b", 20, 290), ("c", 20, 310)]

    table.sql("OPTIMIZE {table}")
    table.land([(None, b'{"n": 7, "k": "a"}', 0, 1), (None, b"bad", 0, 2)])
    assert table.ways()[-1] == "driver"
    assert len(table.numbers()) == 62


def test_rows_of_a_clustered_table_land_as_files_with_statistics_of_its_clusters(
    bench: Bench,
) -> None:
    many = ", ".join(f"c{n} BIGINT" for n in range(40))
    table = laid_out(
        bench,
        f"n BIGINT, {many}",
        cluster_by=("c39", "n"),
        file_size="64mb",
        properties={"delta.checkpointInterval": "2"},
    )
    definition = table.log.definition()
    assert definition is not None
    assert definition.file_bytes == 64 << 20
    assert {*definition.clusters} == {("c39",), ("n",)}
    assert {"clustering", "domainMetadata"} <= definition.features

    for number in range(3):
        table.land(records({"n": number, "c39": 10 * number}))
    assert table.ways() == ["driver"] * 3
    assert [*table.path.glob("_delta_log/*.checkpoint*.parquet")]
    [added] = table.log.added(2)
    assert json.loads(str(added.statistics))["maxValues"]["c39"] == 10
    assert files_read(table, "c39 = 10") == 1
    assert files_read(table, "c39 >= 10") == 2

    table.sql("OPTIMIZE {table} FULL")
    table.land(records({"n": 3, "c39": 30}))
    assert table.ways()[-1] == "driver"
    anew = table.log.definition()
    assert anew is not None
    assert anew.clusters == definition.clusters
    shown = table.sql("DESCRIBE DETAIL {table}")[0]
    assert shown["clusteringColumns"] == ["c39", "n"]
    assert table.numbers() == [0, 1, 2, 3]


def test_statistics_of_clusters_are_kept_wherever_the_columns_are(bench: Bench) -> None:
    table = laid_out(bench, "n BIGINT, m BIGINT", cluster_by=("m",))
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')")
    table.land(records({"n": 1, "m": 2}))
    assert table.ways()[-1] == "driver"
    said = json.loads(str(table.log.added(table.version)[0].statistics))
    assert said["maxValues"] == {"m": 2}


def test_rows_by_key_move_between_the_files_of_partitions(bench: Bench) -> None:
    keyed = {"mode": "upsert", "keys": ("n",), "order_by": ("d",), "partition_by": ("d", "z")}
    table = laid_out(bench, "n BIGINT, d DATE, z TIMESTAMP_NTZ, k STRING", **keyed)
    z = "2026-01-02T03:04:05"
    table.land(records(*({"n": n, "d": "2026-01-02", "z": z, "k": "old"} for n in range(4))))
    newer = {"n": 0, "d": "2026-01-03", "z": z}, {"n": 1, "d": "2026-01-03"}
    table.land(records(*newer, {"n": 2, "d": "2026-01-01"}, {"n": 9}))

    assert table.ways() == ["driver", "driver"]
    found = table.sql("SELECT n, day(d) AS d, z IS NULL AS z, k FROM {table} ORDER BY n")
    assert [tuple(row) for row in found] == [
        (0, 3, False, None),
        (1, 3, True, None),
        (2, 2, False, "old"),
        (3, 2, False, "old"),
        (9, None, True, None),
    ]
    assert files_read(table, "d = '2026-01-03' AND z IS NULL") == 1
    table.sql("OPTIMIZE {table}")
    table.land(records({"n": 3, "d": "2026-01-03"}))  # its index begins with files of Spark's
    third = table.sql("SELECT n FROM {table} WHERE d = '2026-01-03' ORDER BY n")
    assert [row["n"] for row in third] == [0, 1, 3]
    assert table.ways()[-1] == "driver"


def test_a_table_by_key_that_is_partitioned_by_a_time_lands_through_spark(bench: Bench) -> None:
    keyed = {"mode": "upsert", "keys": ("n",), "partition_by": ("t",)}
    table = laid_out(bench, "n BIGINT, t TIMESTAMP", **keyed)
    definition = table.log.definition()
    assert definition is not None
    way = way_into(AS_FILES, definition, None, replaced(table.pipeline))
    assert way.reason == "rows are replaced, and the table is partitioned by the time t"
