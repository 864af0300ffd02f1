"""A bad record in a batch: no task reads more than its share, and the batch stays affordable."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, Observation

from rivermouth.config import Pipeline
from rivermouth.errors import BatchFailed
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.offsets import Position
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.merge import Merge
from tests.spark.batch_table import batch_table
from tests.spark.conftest import RAW, Bench, RawRow, a_pipeline
from tests.spark.test_append import a_pipeline as an_append

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 8


def noting(bench: Bench, rows: list[RawRow], notes: Path) -> DataFrame:
    """Kafka rows in ``PARTITIONS`` parts; each evaluation of a part is noted with its task."""
    notes.mkdir()
    filled = [tuple(each) for each in bench.raw(rows).collect()]

    def note(part: int, held: Iterable[object]) -> Iterator[object]:
        context = TaskContext.get()
        task = context.taskAttemptId() if context else -1
        (notes / f"{task}-{part}").touch()
        return iter(held)

    parts = bench.spark.sparkContext.parallelize(filled, PARTITIONS)
    return bench.spark.createDataFrame(parts.mapPartitionsWithIndex(note), RAW)


@pytest.mark.takes_long("upsert")
@pytest.mark.parametrize(
    ("pipeline", "landing", "record"),
    [(an_append(), DataFrameWriter, "n"), (a_pipeline(), Merge, "order_id")],
    ids=["append", "upsert"],
)
def test_no_task_reads_the_whole_batch_because_of_one_bad_record(
    bench: Bench, pipeline: Pipeline, landing: type[DataFrameWriter] | type[Merge], record: str
) -> None:
    rows: list[RawRow] = [
        (b"%d" % each, json.dumps({record: each}).encode(), 0, each) for each in range(80)
    ]
    rows[70] = (b"70", b"bad", 0, 70)
    table, notes = batch_table(bench, pipeline, landing), bench.folder / "notes"

    table.land(rows, raw=noting(bench, rows, notes))

    read: dict[str, int] = {}
    for each in notes.iterdir():
        task, _, _ = each.name.rpartition("-")
        read[task] = read.get(task, 0) + 1
    # The files of an append are written by as many tasks as the site has.
    assert max(read.values()) <= PARTITIONS // (table.site.tasks or 1)
    assert [*table.bad()] == [(0, 70)]
    assert len(table.rows()) == 79


METRICS: dict[str, dict[str, int]] = {
    "lost by the server": {},
    "counted twice by it": {"written": 2},
}


@pytest.mark.takes_long("3-lost by the server", "1-counted twice by it")
@pytest.mark.parametrize("metrics", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("said", [1, 3])
def test_what_is_in_quarantine_is_counted_where_the_metric_is_not_to_be_trusted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, metrics: dict[str, int], said: int
) -> None:
    pipeline = an_append()
    rows: list[RawRow] = [(None, b"bad", 0, 0)]
    plan = bench.plan(1, rows, Position())
    bad = decoder(pipeline)(bench.raw(rows))
    monkeypatch.setattr(Observation, "get", property(lambda _: metrics))
    write = partial(bench.site(pipeline, "table").quarantine.write, bad, plan)

    if said == 1:
        write(said)
    else:
        with pytest.raises(BatchFailed, match="3 records") as caught:
            write(said)
        assert "1 records" in str(caught.value)
