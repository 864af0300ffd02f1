"""Bad records of a fold: tasks set them apart, and no record is read or decoded twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.target import create_target
from rivermouth.write.files.sieve import Sifted
from rivermouth.write.landing import RawBatch, Site
from rivermouth.write.landings import sieving
from rivermouth.write.landings.merge import Merge
from tests.spark.conftest import ARRIVED, Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GREATEST = 2**63 - 1
COLUMNS = "id BIGINT, units BIGINT, buyer STRING"
SHAPES: dict[str, dict[str, Any]] = {
    "upsert": {"mode": "upsert", "order_by": ()},
    "insert": {"mode": "insert", "order_by": ()},
    "totals by tasks": {"mode": "aggregate", "order_by": (), "metrics": {"n": "sum(units)"}},
    "totals by Spark": {
        "mode": "aggregate",
        "order_by": (),
        "metrics": {"n": "count()", "buyers": "approx_distinct(buyer)"},
    },
}


def pipeline(shape: str) -> Pipeline:
    return a_pipeline(schema=COLUMNS, key=None, keys=("id",), **SHAPES[shape])


def record(number: int | None, units: int = 1) -> bytes:
    return json.dumps({"id": number, "units": units, "buyer": "x"}).encode()


def created(bench: Bench, told: Pipeline) -> Site:
    site = bench.site(told, "orders")
    create_target(bench.spark, told, site.address)
    return site


def never(raw: DataFrame) -> DataFrame:
    raise AssertionError("the batch is decoded once more")


def rows_of(bench: Bench, table: str) -> list[dict[str, Any]]:
    return list(DeltaTable(str(bench.folder / table)).to_pyarrow_table().to_pylist())


def counts_in(bench: Bench) -> tuple[RowCounts, ...] | None:
    entry = entry_of([*FolderLog(bench.folder / "orders").commits()][-1], "p")
    assert entry is not None
    return entry.rows


BATCH: list[RawRow] = [
    (b"a", record(1), 0, 0),
    (b"b", record(None), 0, 1),
    (b"c", b"{oops", 0, 3),
    (None, record(2), 1, 0),
    (b"d", b"", 1, 1),
    (b"e", None, 1, 2),
    (b"f", record(1), 1, 3),
]


@pytest.mark.short(("shape",), {("upsert",), ("totals by tasks",)})
@pytest.mark.parametrize("shape", SHAPES)
def test_bad_records_are_in_quarantine_and_the_batch_is_decoded_once(
    bench: Bench, shape: str
) -> None:
    told = pipeline(shape)
    plan = bench.plan(1, BATCH, Position())

    Merge(created(bench, told)).land(RawBatch(bench.raw(BATCH), never), plan)

    assert classify(plan, FolderLog(bench.folder / "orders").commits()) is Outcome.COMMITTED
    assert {row["id"] for row in rows_of(bench, "orders")} == {1, 2}
    assert counts_in(bench) == (RowCounts(1, 2), RowCounts(2, 2))
    held = rows_of(bench, "orders_quarantine")
    assert {(row["commit"], row["pipeline"], row["sequence"]) for row in held} == {
        (plan.commit, "p", 1)
    }
    assert {row["timestamp"] for row in held} == {ARRIVED}
    assert all(row["reason"] for row in held)
    found = [(row["key"], row["value"], row["partition"], row["offset"]) for row in held]
    assert sorted(found, key=lambda row: row[2:]) == [BATCH[at] for at in (1, 2, 4, 5)]
    codes = {row["offset"] + 10 * row["partition"]: row["code"] for row in held}
    assert codes == {1: "RM605", 3: "RM603", 11: "RM602", 12: "RM601"}
    assert not [*(bench.folder / "stage").iterdir()], "what the tasks told is removed"


def test_rows_with_key_and_headers_are_decoded_with_these(bench: Bench) -> None:
    told = pipeline("upsert")
    source = told.source.model_copy(update={"metadata": ("key", "headers")})
    told = told.model_copy(update={"source": source})
    named = F.struct(F.lit("h").alias("key"), F.lit(b"1").alias("value"))
    raw = bench.raw(BATCH).withColumn("headers", F.array(named))

    Merge(created(bench, told)).land(RawBatch(raw, never), bench.plan(1, BATCH, Position()))

    found = {row["id"]: row["_kafka"] for row in rows_of(bench, "orders")}
    assert {each: kafka["key"] for each, kafka in found.items()} == {1: b"f", 2: None}
    assert found[1]["headers"] == [{"key": "h", "value": b"1"}]
    assert len(rows_of(bench, "orders_quarantine")) == 4


def test_a_batch_of_bad_records_alone_is_a_commit_without_a_row(bench: Bench) -> None:
    rows: list[RawRow] = [(None, b"{oops", 0, 0), (None, b"[]", 0, 1)]
    plan = bench.plan(1, rows, Position())

    Merge(created(bench, pipeline("upsert"))).land(RawBatch(bench.raw(rows), never), plan)

    assert counts_in(bench) == (RowCounts(0, 2),)
    assert rows_of(bench, "orders") == []
    assert len(rows_of(bench, "orders_quarantine")) == 2


def test_records_of_a_sum_that_overflows_join_those_that_were_set_apart(bench: Bench) -> None:
    """The MERGE refuses them, and their batch is split; the others are in quarantine by then."""
    told = pipeline("totals by tasks")
    rows: list[RawRow] = [
        (None, record(1, GREATEST), 0, 0),
        (None, record(1, GREATEST), 0, 1),
        (None, b"{oops", 0, 2),
        (None, record(2), 0, 3),
    ]
    plan = bench.plan(1, rows, Position())

    Merge(created(bench, told)).land(RawBatch(bench.raw(rows), decoder(told)), plan)

    held = rows_of(bench, "orders_quarantine")
    assert sorted((row["offset"], row["code"]) for row in held) == [
        (0, "RM606"),
        (1, "RM606"),
        (2, "RM603"),
    ]
    assert {row["commit"] for row in held} == {plan.commit}
    assert counts_in(bench) == (RowCounts(1, 3),)
    assert [(row["id"], row["n"]) for row in rows_of(bench, "orders")] == [(2, 1)]


def test_where_a_task_has_not_told_of_itself_the_batch_is_split(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sieving, "sifted", lambda *_: Sifted(0, {}, ()))
    told = pipeline("upsert")
    plan = bench.plan(1, BATCH, Position())

    Merge(created(bench, told)).land(RawBatch(bench.raw(BATCH), decoder(told)), plan)

    assert counts_in(bench) == (RowCounts(1, 2), RowCounts(2, 2))
    assert len(rows_of(bench, "orders_quarantine")) == 4


def test_a_quarantine_that_asks_for_more_is_written_through_spark(bench: Bench) -> None:
    told = pipeline("upsert")
    landing, first = Merge(created(bench, told)), bench.plan(1, BATCH, Position())
    landing.land(RawBatch(bench.raw(BATCH), never), first)
    bad = bench.address("orders_quarantine")
    bench.spark.sql(f"ALTER TABLE {bad.sql} ADD CONSTRAINT coded CHECK (code IS NOT NULL)")
    later: list[RawRow] = [(None, b"{oops", 0, 4)]

    landing.land(
        RawBatch(bench.raw(later), decoder(told)), bench.plan(2, later, first.draft.position)
    )

    assert len(rows_of(bench, "orders_quarantine")) == 5
    newest = bench.spark.sql(f"DESCRIBE HISTORY {bad.sql} LIMIT 1").collect()[0]
    assert "Spark" in newest["engineInfo"]
