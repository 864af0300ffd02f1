"""Kafka's rows in Arrow batches that Spark does not measure, and what a large record changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import Pipeline
from rivermouth.warehouse.spark_commits import session_confs
from rivermouth.write.arrow_batches import BYTES, ROWS, SHARE, ArrowBatches
from tests.spark.batch_table import keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline
from tests.spark.files_table import made

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SMALL: list[RawRow] = [
    (None, None, 0, 0),
    (b"k", b"", 0, 1),
    (b"k", b"v" * (SHARE - 1), 0, 2),
    (None, b"v" * SHARE, 0, 3),
]
LARGE: list[RawRow] = [(b"k", b"v" * SHARE, 0, 4)]
LARGE_KEY: list[RawRow] = [(b"k" * (SHARE + 1), None, 0, 4)]


UNMEASURED = ("2147483647", "4000")
UNSET = (None, None)


def settings(session: SparkSession) -> tuple[str | None, ...]:
    return tuple(session.conf.get(each, None) for each in (BYTES, ROWS))


class Evaluated:
    """Gives the sizes of the values that a Python worker gets; notes each call's setting."""

    def __init__(self) -> None:
        self.settings: list[tuple[str | None, ...]] = []

    def __call__(self, rows: DataFrame) -> list[int | None]:
        self.settings.append(settings(rows.sparkSession))
        return [each["size"] for each in rows.mapInArrow(_sizes, "size INT").collect()]


def _sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sizes = pc.binary_length(batch.column("value")).cast(pa.int32())
        yield pa.RecordBatch.from_arrays([sizes], ["size"])


def batches_of(bench: Bench, pipeline: Pipeline | None = None, **site: Any) -> ArrowBatches:
    return ArrowBatches(replace(bench.site(pipeline or a_pipeline(), "orders"), **site))


def test_batches_of_small_records_are_not_measured(bench: Bench) -> None:
    evaluate = Evaluated()
    sizes = batches_of(bench).evaluated(bench.raw(SMALL), evaluate)

    assert sorted(sizes, key=lambda each: each or -1) == [None, 0, SHARE - 1, SHARE]
    assert evaluate.settings == [UNMEASURED]
    assert settings(bench.spark) == UNSET


@pytest.mark.takes_long("key")
@pytest.mark.parametrize("large", [LARGE, LARGE_KEY], ids=["value", "key"])
def test_from_the_first_large_record_on_all_are_measured(bench: Bench, large: list[RawRow]) -> None:
    evaluate, batches = Evaluated(), batches_of(bench)

    assert len(batches.evaluated(bench.raw(SMALL + large), evaluate)) == len(SMALL) + 1
    assert len(batches.evaluated(bench.raw(SMALL), evaluate)) == len(SMALL)

    assert evaluate.settings == [UNMEASURED, UNSET, UNSET]
    assert settings(bench.spark) == UNSET


def test_another_fault_is_none_of_a_large_record(bench: Bench) -> None:
    evaluate = Evaluated()

    def failing(rows: DataFrame) -> object:
        evaluate(rows)
        raise RuntimeError("of another kind")

    with pytest.raises(RuntimeError, match="of another kind"):
        batches_of(bench).evaluated(bench.raw(SMALL), failing)
    assert len(evaluate.settings) == 1
    assert settings(bench.spark) == UNSET


@pytest.mark.takes_long(
    "spark.sql.execution.arrow.maxRecordsPerBatch-0",
    "spark.sql.execution.arrow.maxRecordsPerBatch-500",
)
@pytest.mark.parametrize(
    ("setting", "value"), [(ROWS, "0"), (ROWS, "500"), (BYTES, "1000000")], ids=str
)
def test_what_a_session_says_of_batches_stays(bench: Bench, setting: str, value: str) -> None:
    evaluate = Evaluated()
    with session_confs(bench.spark, {setting: value}):
        batches = batches_of(bench)
        assert len(batches.evaluated(bench.raw(SMALL + LARGE), evaluate)) == len(SMALL) + 1
        before = settings(bench.spark)
        assert value in before
        assert evaluate.settings == [before]
        assert settings(bench.spark) == before


HEADERS = {"source": {"topics": ("t",), "format": "json", "metadata": ("headers",)}}
OWN = {"select": "n", "target": {"table": "bronze.numbers", "schema": "n BIGINT"}}


@pytest.mark.parametrize(
    ("pipeline", "site"),
    [({}, {"store": None}), (HEADERS, {}), (OWN, {})],
    ids=["elsewhere", "headers", "own code"],
)
def test_where_other_columns_or_rows_may_be_large_all_are_measured(
    bench: Bench, pipeline: dict[str, Any], site: dict[str, Any]
) -> None:
    given = {
        "name": "p",
        "source": {"topics": ("t",), "format": "json"},
        "ddl": "n BIGINT",
        "target": {"table": "bronze.numbers"},
        **pipeline,
    }
    evaluate = Evaluated()
    batches_of(bench, Pipeline.model_validate(given), **site).evaluated(bench.raw(SMALL), evaluate)
    assert evaluate.settings == [UNSET]


@pytest.mark.thorough
def test_rows_of_a_large_record_land_as_files_once(bench: Bench) -> None:
    table = made(bench)
    padded: list[RawRow] = [
        (None, b'{"n": %d, "x": "%s"}' % (n, b"x" * size), 0, n)
        for n, size in enumerate((1, SHARE, 1))
    ]
    table.land(padded)

    assert table.numbers() == [0, 1, 2]


@pytest.mark.thorough
def test_changes_of_a_large_record_are_merged_once(bench: Bench) -> None:
    table = keyed_table(bench, a_pipeline(key=None))
    table.land(
        [
            (None, b'{"order_id": %d, "status": "%s", "rank": 1}' % (n, b"x" * size), 0, n)
            for n, size in enumerate((1, SHARE, 1))
        ]
    )

    found = sorted((row["order_id"], len(row["status"])) for row in table.rows())
    assert found == [(0, 1), (1, SHARE), (2, 1)]
