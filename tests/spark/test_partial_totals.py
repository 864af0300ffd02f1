"""Totals that tasks make a part of, against those that Spark makes of each record."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder_to_fold
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.warehouse.spark_commits import session_confs
from rivermouth.write.evaluation import refused
from rivermouth.write.landings.folding import Folding
from rivermouth.write.rows import Keyed
from rivermouth.write.shapes.totals import totals
from tests.builders import span
from tests.spark.conftest import SESSION_SETTINGS, Bench, RawRow, a_pipeline

pytestmark = pytest.mark.spark

GREATEST = 2**63 - 1
SCHEMA = (
    "tiny TINYINT, small SMALLINT, whole INT, great BIGINT, price DECIMAL(6,2),"
    " huge DECIMAL(28,3), at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, name STRING,"
    " yes BOOLEAN, raw BINARY, rough DOUBLE"
)
METRICS = {
    "n": "count()",
    "named": "count(name)",
    "tinies": "sum(tiny)",
    "smalls": "sum(small)",
    "wholes": "sum(whole)",
    "greats": "sum(great)",
    "spent": "sum(price)",
    "huges": "sum(huge)",
    "first": "min(at)",
    "last": "max(local)",
    "day_1": "min(day)",
    "most": "max(great)",
    "dearest": "max(price)",
    "least": "min(tiny)",
}
KEYS = ("great", "price", "at", "local", "day", "name", "yes", "raw", "window(at, '7 minutes')")


def totals_by(*keys: str, metrics: dict[str, str] | None = None) -> Pipeline:
    told = {"mode": "aggregate", "keys": keys, "order_by": (), "metrics": metrics or METRICS}
    return a_pipeline(schema=SCHEMA, key=None, **told)


def record(dice: random.Random, *never_null: str) -> bytes:
    """A record of few different values, some of them null, or at the edge of their type."""
    minute = dice.randrange(0, 60, 3)
    values: dict[str, Any] = {
        "tiny": dice.choice([-128, 0, 127]),
        "small": dice.choice([-32768, 5, 32767]),
        "whole": dice.choice([-(2**31), 7, 2**31 - 1]),
        "great": dice.choice([GREATEST, -GREATEST - 1, 3]),
        "price": dice.choice(["-9999.99", "0.01", "9999.99"]),
        "huge": dice.choice(["9" * 25 + ".999", "-" + "9" * 25 + ".999", "1"]),
        "at": f"{dice.choice([1905, 1970, 2026])}-03-04T05:{minute:02}:06.000007Z",
        "local": f"2026-03-04T05:{minute:02}:06",
        "day": dice.choice(["0001-01-01", "1969-12-31", "9999-12-31"]),
        "name": dice.choice(["", "a", "é", "𝄞"]),
        "yes": dice.choice([True, False]),
        "raw": dice.choice(["", "AAE="]),
        "rough": 0.5,
    }
    left = {k: v for k, v in values.items() if k in never_null or dice.random() < 0.8}
    return json.dumps(left).encode()


def rows_of(folded: DataFrame) -> list[str]:
    """The rows of a fold in an order, as text that tells values of all types apart."""
    columns = sorted(each for each in folded.columns if each != "_kafka")
    return sorted(str(row) for row in folded.select(*columns).collect())


@pytest.mark.takes_long("keys1", "keys2", "keys4", "keys5", "keys6", "keys7", "keys9")
@pytest.mark.parametrize("keys", [(each,) for each in KEYS] + [("name", KEYS[-1], "small")])
def test_both_steps_make_what_spark_makes_of_each_record(
    bench: Bench, keys: tuple[str, ...]
) -> None:
    dice, pipeline = random.Random(str(keys)), totals_by(*keys)
    columns = [each.column for each in pipeline.target.key_parts]
    rows: list[RawRow] = [(None, record(dice, *columns), n % 3, n) for n in range(400)]
    raw, keyed = bench.raw(rows).repartition(3), totals(pipeline)
    assert keyed.partly is not None

    in_steps = keyed.partly.fold(keyed.partly.before(raw, None))
    at_once = keyed.fold(decoder_to_fold(pipeline, None, keyed.reads, ordered=False)(raw, None))

    assert dict(in_steps.dtypes) == dict(at_once.dtypes)
    assert rows_of(in_steps) == rows_of(at_once)


@pytest.mark.takes_long(
    "spark.sql.execution.arrow.useLargeVarTypes-true",
    "spark.sql.execution.arrow.maxRecordsPerBatch-1",
    "spark.sql.execution.arrow.maxRecordsPerBatch-0",
)
@pytest.mark.parametrize(("setting", "value"), SESSION_SETTINGS)
def test_no_setting_of_the_session_changes_them(bench: Bench, setting: str, value: str) -> None:
    dice, pipeline = random.Random(5), totals_by("name", "window(at, '7 minutes')")
    rows: list[RawRow] = [(None, record(dice, "name", "at"), 0, n) for n in range(60)]
    keyed = totals(pipeline)
    assert keyed.partly is not None
    partly = keyed.partly
    usual = rows_of(partly.fold(partly.before(bench.raw(rows), None)).drop("first"))
    with session_confs(bench.spark, {setting: value}):
        folded = partly.fold(partly.before(bench.raw(rows), None)).drop("first")
        assert rows_of(folded) == usual


@pytest.mark.takes_long("keys0-metrics0", "keys1-metrics1")
@pytest.mark.parametrize(
    ("keys", "metrics"),
    [
        (("name",), {"far": "max(rough)"}),
        (("name",), {"names": "approx_distinct(name)"}),
        (("great",), {"word": "max(name)"}),
    ],
)
def test_what_arrow_may_see_differently_spark_makes_alone(
    bench: Bench, keys: tuple[str, ...], metrics: dict[str, str]
) -> None:
    assert totals(totals_by(*keys, metrics=metrics)).partly is None


MANY = [span(0, 9, 0, f"topic{number}") for number in range(17)]


@pytest.mark.parametrize(("ranges", "parts"), [(MANY[:16], True), (MANY, False)])
def test_records_of_more_ranges_than_have_counters_are_counted_one_by_one(
    bench: Bench, ranges: list[OffsetRange], parts: bool
) -> None:
    site = bench.site(totals_by("name"), "orders")
    assert isinstance(site.rows, Keyed)
    raw = bench.raw([(None, b'{"name": "a"}', 0, 0)])

    folded = Folding(site, site.rows).of(raw, ranges)

    plan = folded.changes._jdf.queryExecution().analyzed().toString()
    assert ("low_" in plan) is parts


def test_a_bad_record_is_refused(bench: Bench) -> None:
    partly = totals(totals_by("name")).partly
    assert partly is not None
    raw = bench.raw([(None, b'{"name": "a"}', 0, 0), (None, b'{"great": 1}', 0, 1)])
    with pytest.raises(PySparkException) as raised:
        partly.before(raw, None).collect()
    assert refused(raised.value)
