"""Bad records of a fold: tasks set them apart, and no record is read or decoded twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from rivermouth.config import Commit, Pipeline
from rivermouth.config.registry import FORMATS
from rivermouth.errors import BatchFailed
from rivermouth.formats.arrow import REFUSAL, OpenSideOutput
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome
from rivermouth.protocol.entry import RowCounts
from rivermouth.spark.tables import Address
from rivermouth.warehouse.tables import QuarantineTable
from rivermouth.write.files.bad_records import Diverted, diverted
from rivermouth.write.landing import Site
from rivermouth.write.landings import folding
from rivermouth.write.landings.folding import Folding, may_divert
from rivermouth.write.rows import Keyed
from tests.spark.batch_table import by_merge, keyed_table
from tests.spark.conftest import ARRIVED, Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GREATEST = 2**63 - 1
COLUMNS = "id BIGINT, units BIGINT, buyer STRING, at TIMESTAMP"
HOUR = datetime(2026, 1, 2, 10, tzinfo=timezone.utc)
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


def pipeline(shape: str, **more: Any) -> Pipeline:
    told = {"schema": COLUMNS, "key": None, "keys": ("id",), **SHAPES[shape], **more}
    return a_pipeline(**told)


def record(number: int | None, units: int = 1, minute: int | None = 20) -> bytes:
    at = None if minute is None else f"2026-01-02T10:{minute:02d}:00Z"
    return json.dumps({"id": number, "units": units, "buyer": "x", "at": at}).encode()


def never(raw: DataFrame) -> DataFrame:
    raise AssertionError("the batch is decoded once more")


def left_in_stage(bench: Bench) -> list[Path]:
    return [*(bench.folder / "stage").iterdir()]


BATCH: list[RawRow] = [
    (b"a", record(1), 0, 0),
    (b"b", record(None), 0, 1),
    (b"c", b"{oops", 0, 3),
    (None, record(2), 1, 0),
    (b"d", b"", 1, 1),
    (b"e", None, 1, 2),
    (b"f", record(1), 1, 3),
]
BAD = {(0, 1): "RM605", (0, 3): "RM603", (1, 1): "RM602", (1, 2): "RM601"}
"""The codes of those that are bad."""


@pytest.mark.short(("shape",), {("upsert",)})
@pytest.mark.parametrize("shape", SHAPES)
def test_bad_records_are_in_quarantine_and_the_batch_is_decoded_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    reports: list[Path] = []

    def counting(folder: Path, where: str) -> Diverted:
        reports.extend(folder.glob("*.json"))
        return diverted(folder, where)

    monkeypatch.setattr(folding, "diverted", counting)
    table = keyed_table(bench, pipeline(shape))

    plan = table.land(BATCH, decode=never)

    assert table.outcome(plan) is Outcome.COMMITTED
    assert {row["id"] for row in table.rows()} == {1, 2}
    assert table.entry.rows == (RowCounts(1, 2), RowCounts(2, 2))
    assert table.bad(plan.commit) == BAD
    held = table.quarantine()
    assert {(row["pipeline"], row["sequence"], row["timestamp"]) for row in held} == {
        ("p", 1, ARRIVED)
    }
    assert all(row["reason"] for row in held)
    found = [(row["key"], row["value"], row["partition"], row["offset"]) for row in held]
    assert sorted(found, key=lambda row: row[2:]) == [BATCH[at] for at in (1, 2, 4, 5)]
    assert len(reports) == 2, "each of two tasks has decoded its part once"
    assert not left_in_stage(bench), "what the tasks reported is removed"


@pytest.mark.thorough
@pytest.mark.parametrize("bad", [b"{oops", record(1, minute=None)], ids=["no JSON", "no time"])
@pytest.mark.parametrize("shape", ["totals by tasks", "totals by Spark"])
def test_a_bad_record_changes_nothing_about_the_windows_of_good_ones(
    bench: Bench, shape: str, bad: bytes
) -> None:
    table = keyed_table(bench, pipeline(shape, keys=("id", "window(at, '1 hour')")))
    values = (record(1, minute=20), bad, record(1, minute=50))

    table.land([(None, each, 0, at) for at, each in enumerate(values)])

    assert [(row["window_start"], row["n"]) for row in table.rows()] == [(HOUR, 2)]
    assert table.entry.rows == (RowCounts(2, 1),)
    assert [*table.bad()] == [(0, 1)]


@pytest.mark.takes_long("json")
@pytest.mark.parametrize("form", ["string", "json"])
def test_a_tombstone_beside_a_bad_record_deletes(bench: Bench, form: str) -> None:
    table = keyed_table(bench, pipeline("upsert", key=form))
    names = {each: b"%d" % each if form == "string" else b'{"id": %d}' % each for each in (1, 2)}
    rows: list[RawRow] = [
        (names[1], record(1), 0, 0),
        (names[2], record(2), 0, 1),
        (names[2], b"{oops", 0, 2),
        (names[1], None, 0, 3),
    ]

    table.land(rows, decode=never)

    assert [row["id"] for row in table.rows()] == [2]
    assert table.bad() == {(0, 2): "RM603"}
    assert table.entry.rows == (RowCounts(3, 1),)


def test_rows_with_key_and_headers_are_decoded_with_these(bench: Bench) -> None:
    told = pipeline("upsert")
    source = told.source.model_copy(update={"metadata": ("key", "headers")})
    table = keyed_table(bench, told.model_copy(update={"source": source}))
    named = F.struct(F.lit("h").alias("key"), F.lit(b"1").alias("value"))

    table.land(BATCH, decode=never, raw=bench.raw(BATCH).withColumn("headers", F.array(named)))

    found = {row["id"]: row["_kafka"] for row in table.rows()}
    assert {each: kafka["key"] for each, kafka in found.items()} == {1: b"f", 2: None}
    assert found[1]["headers"] == [{"key": "h", "value": b"1"}]
    assert table.bad() == BAD


def test_a_batch_of_bad_records_alone_is_a_commit_without_a_row(bench: Bench) -> None:
    table = keyed_table(bench, pipeline("upsert"))
    table.land([(None, b"{oops", 0, 0), (None, b"[]", 0, 1)], decode=never)
    assert table.entry.rows == (RowCounts(0, 2),)
    assert table.rows() == []
    assert len(table.bad()) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("lost", [False, True])
def test_records_of_a_sum_that_overflows_join_those_that_were_set_apart(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """The MERGE refuses them, and their batch is split; the others are in quarantine by then.

    ``lost``: Spark has lost the number of rows that it wrote.
    """
    if lost:
        monkeypatch.setattr(Observation, "get", property(lambda _: {}))
    table = keyed_table(bench, pipeline("totals by tasks"))
    values = (record(1, GREATEST), record(1, GREATEST), b"{oops", record(2))

    plan = table.land([(None, each, 0, at) for at, each in enumerate(values)])

    assert table.bad(plan.commit) == {(0, 0): "RM606", (0, 1): "RM606", (0, 2): "RM603"}
    assert len(table.bad()) == 3
    assert table.entry.rows == (RowCounts(1, 3),)
    assert [(row["id"], row["n"]) for row in table.rows()] == [(2, 1)]


@pytest.mark.thorough
def test_a_bad_record_that_kafka_loses_before_its_batch_is_split_halts_it(bench: Bench) -> None:
    """One goes, and one is found to overflow: as many are bad as before, but not the same."""
    table = keyed_table(bench, pipeline("totals by tasks"))
    table.land([(None, record(1, GREATEST), 0, 0)], decode=never)
    rows: list[RawRow] = [(None, b"{oops", 0, 1), (None, record(1), 0, 2)]
    later = decoder(table.pipeline)(bench.raw(rows[1:]))

    with pytest.raises(BatchFailed, match="other records"):
        table.land(rows, decode=lambda _: later)

    assert [(row["id"], row["n"]) for row in table.rows()] == [(1, GREATEST)]


@pytest.mark.thorough
def test_a_message_key_that_names_no_row_lets_the_batch_be_split_and_nothing_is_left(
    bench: Bench,
) -> None:
    table = keyed_table(bench, pipeline("upsert", key="string"))

    table.land([*BATCH, (b"not a number", None, 0, 4)])

    assert table.bad()[0, 4] == "RM604"
    assert not left_in_stage(bench)
    quarantine = Path(f"{table.path}_quarantine")
    assert {*DeltaTable(str(quarantine)).file_uris()} == {
        str(each) for each in quarantine.glob("*.parquet")
    }, "a file that a side output wrote is left"


@pytest.mark.thorough
def test_a_quarantine_that_cannot_be_read_stops_no_batch_without_bad_records(bench: Bench) -> None:
    table = keyed_table(bench, pipeline("upsert"))
    table.land(BATCH, decode=never)
    newest = max((bench.folder / "orders_quarantine" / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:100])
    table.landing = by_merge(table.site)

    table.land([(None, record(3), 0, 4)], decode=never)

    assert {row["id"] for row in table.rows()} == {1, 2, 3}


def _of(site: Site, **parts: Mapping[str, Any]) -> Site:
    """The site of a pipeline with other settings of ``source`` or ``target``."""
    update = {
        part: getattr(site.pipeline, part).model_copy(update=dict(settings))
        for part, settings in parts.items()
    }
    return replace(site, pipeline=site.pipeline.model_copy(update=update))


def _in_a_catalog(site: Site) -> Site:
    assert isinstance(site.quarantine, QuarantineTable)
    named = replace(site.quarantine, address=Address(name=("main", "bronze", "bad")))
    return replace(site, quarantine=named)


NOT_WHERE: dict[str, Callable[[Site], Site]] = {
    "tasks run elsewhere": lambda site: replace(site, tasks=None),
    "another pipeline writes the table": lambda site: replace(site, others=("another",)),
    "the quarantine is in a catalog": _in_a_catalog,
    "a range is read in several parts": lambda site: _of(site, source={"min_partitions": 3}),
    "a range may be": lambda site: _of(site, source={"max_records_per_partition": 10}),
    "Spark is to commit": lambda site: _of(site, target={"commit": Commit.SPARK}),
}


@pytest.mark.takes_long(
    "another pipeline writes the table",
    "the quarantine is in a catalog",
    "a range may be",
    "Spark is to commit",
)
@pytest.mark.parametrize("why", NOT_WHERE)
def test_tasks_set_nothing_apart_where(bench: Bench, why: str) -> None:
    site = bench.site(pipeline("upsert"), "orders")
    assert may_divert(site)
    assert not may_divert(NOT_WHERE[why](site))


def test_a_format_that_tasks_do_not_decode_lets_nothing_be_set_apart(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS.by_name, "json", replace(FORMATS.by_name["json"], in_task=None))
    assert not may_divert(bench.site(pipeline("upsert"), "orders"))


@pytest.mark.thorough
def test_records_that_are_none_of_the_batch_are_not_merged(bench: Bench) -> None:
    table = keyed_table(bench, pipeline("upsert"))
    with pytest.raises(BatchFailed, match="other records"):
        table.land(BATCH, table.plan(BATCH[:4]), decode=never)
    assert table.rows() == []


@pytest.mark.thorough
def test_where_a_task_has_not_told_of_itself_the_batch_is_split(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "diverted", lambda *_: Diverted(1, {}, ()))
    table = keyed_table(bench, pipeline("upsert"))

    table.land(BATCH)

    assert table.entry.rows == (RowCounts(1, 2), RowCounts(2, 2))
    assert table.bad() == BAD


@pytest.mark.thorough
def test_a_quarantine_that_asks_for_more_is_written_through_spark(bench: Bench) -> None:
    table = keyed_table(bench, pipeline("upsert"))
    table.land(BATCH, decode=never)
    bad = bench.address("orders_quarantine")
    bench.spark.sql(f"ALTER TABLE {bad.sql} ADD CONSTRAINT coded CHECK (code IS NOT NULL)")

    table.land([(None, b"{oops", 0, 4)])

    assert len(table.bad()) == 5
    newest = bench.spark.sql(f"DESCRIBE HISTORY {bad.sql} LIMIT 1").collect()[0]
    assert "Spark" in newest["engineInfo"]


class _Unopened:
    """A side output of a fold that nobody evaluates."""

    def opened(self) -> AbstractContextManager[OpenSideOutput]:
        raise AssertionError("it is evaluated")


@pytest.mark.takes_long("insert", "totals by tasks", "totals by Spark")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_task_does_not_know_to_be_bad_fails_in_spark(bench: Bench, shape: str) -> None:
    """What a fold does not read, Spark leaves out, and what would refuse bad records with it."""
    site = bench.site(pipeline(shape), "orders")
    assert isinstance(site.rows, Keyed)
    alone = replace(site.rows, partly=None)
    fold = Folding(site, alone).with_side_output(bench.raw(BATCH), _Unopened())
    plan = fold._jdf.queryExecution().optimizedPlan().toString()
    assert REFUSAL in plan
