"""Rows that others delete on purpose, on real parts: once accepted, they are no fault."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.errors import ResumeRefused
from rivermouth.run.accepting import AcceptedDelete
from rivermouth.run.run import Run
from rivermouth.testing import Record
from rivermouth.verification import PipelineProof, verify
from tests.faults.spark_lake import SparkLake
from tests.lake import append_pipeline, bid, order, upsert_pipeline
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

KEY = {"append": "auction", "upsert": "order_id"}


def records(mode: str, start: int) -> list[Record]:
    """A hundred records of ids that are their numbers; of an upsert each id comes twice."""
    made: list[Record] = []
    for n in range(start, start + 100):
        id_ = n if mode == "append" else start + n % 50
        value = bid(id_) if mode == "append" else order(id_, f"s{n}", n)
        made.append((str(id_).encode(), b"bad" if n == start + 49 else value, id_ % 2))
    return made


def filled(lake: SparkLake, topic: str, mode: str) -> Path:
    """A pipeline ``p`` that has committed several batches; its table."""
    lake.topic(topic, 2)
    make = append_pipeline if mode == "append" else upsert_pipeline
    config = lake.configure(p=make(topic, max_offsets_per_trigger=40))
    lake.produce(topic, records(mode, 0))
    lake.go()
    return lake.path(str(config.pipelines["p"].target.table))


def by_spark(spark: SparkSession, table: Path, condition: str) -> int:
    spark.sql(f"DELETE FROM delta.`{table}` WHERE {condition}")
    return DeltaTable(str(table)).version()


def by_deltalake(spark: SparkSession, table: Path, condition: str) -> int:
    DeltaTable(str(table)).delete(condition)
    return DeltaTable(str(table)).version()


def accept(lake: SparkLake, *versions: int) -> tuple[AcceptedDelete, ...]:
    heard: list[AcceptedDelete] = []
    run = Run(load(lake.file), lake.spark, lake.scratch, continuous=False)
    found = run.accept_deletes("p", versions, heard.append)
    assert found == tuple(heard), "what was told first is what was accepted"
    return found


def proof(lake: SparkLake) -> PipelineProof:
    [found] = verify(load(lake.file), strict=True).pipelines
    return found


@pytest.mark.parametrize("delete", [by_spark, by_deltalake])
@pytest.mark.parametrize("mode", KEY)
def test_rows_deleted_on_purpose_are_no_fault_once_accepted_and_any_other_one_is(
    lake: SparkLake,
    mode: str,
    delete: Callable[[SparkSession, Path, str], int],
) -> None:
    topic = f"erased-{mode}-{delete.__name__.replace('_', '-')}"
    table = filled(lake, topic, mode)
    first = delete(lake.spark, table, f"{KEY[mode]} BETWEEN 10 AND 14")
    second = delete(lake.spark, table, f"{KEY[mode]} = 20")
    assert len([each for each in proof(lake).problems if "found no row" in each]) == (
        6 if mode == "upsert" else 0
    )
    assert proof(lake).as_dict()["missing"] == 6

    found = accept(lake, first, second)

    assert [(each.version, each.rows, each.listed) for each in found] == [
        (first, 5, True),
        (second, 1, True),
    ]
    assert [each.deleted_rows for each in found] == [5, 1]
    assert (proof(lake).problems, proof(lake).ok, proof(lake).erased) == ((), True, 6)
    with pytest.raises(ResumeRefused, match="cannot be accepted"):
        accept(lake, first)

    # The run goes on; of an upsert, one of the deleted keys comes back.
    lake.produce(topic, records(mode, 100))
    if mode == "upsert":
        lake.produce(topic, [(b"12", order(12, "again", 1), 0)])
    lake.go()
    assert (proof(lake).problems, proof(lake).ok, proof(lake).erased) == ((), True, 6)

    delete(lake.spark, table, f"{KEY[mode]} = 101")
    [line] = proof(lake).problems
    assert "key 101" in line or "neither in the table" in line
    assert proof(lake).as_dict()["missing"] == 1


def test_a_delete_whose_files_vacuum_has_taken_is_accepted_by_its_number_alone(
    lake: SparkLake,
) -> None:
    table = filled(lake, "vacuumed", "append")
    version = by_deltalake(lake.spark, table, "auction IN (3, 30)")  # writes the files anew
    DeltaTable(str(table)).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False
    )

    [found] = accept(lake, version)

    assert (found.rows, found.listed) == (2, False)
    [proved] = verify(load(lake.file)).pipelines
    assert (proved.problems, proved.ok, proved.complete) == ((), True, False)
    assert {what.value: n for what, n in proved.left.items()} == {"rows_of_accepted_deletes": 2}
    assert not proof(lake).ok, "what nobody can tell is not proved"
    by_spark(lake.spark, table, "auction = 31")
    assert verify(load(lake.file)).pipelines[0].as_dict()["missing"] == 1


@pytest.mark.kill
def test_a_kill_in_the_commit_leaves_the_delete_accepted_once_or_not_at_all(
    lake: SparkLake,
) -> None:
    table = filled(lake, "killed-accepting", "append")
    version = by_spark(lake.spark, table, "auction = 7")
    for point, missing in (("P3", 1), ("P6", 0)):
        words, failpoints = ("p", str(version)), f"{point}=kill"
        spark, kind = lake.spark, "accept-deletes"
        with lake.driver(*words, spark=spark, failpoints=failpoints, kind=kind) as process:
            said = said_by(process)
        assert process.returncode == -signal.SIGKILL, said
        found = verify(load(lake.file)).pipelines[0].as_dict()
        assert (found["missing"], found["erased"]) == (missing, 1 - missing)

    with pytest.raises(ResumeRefused, match="cannot be accepted"):
        accept(lake, version)
    lake.produce("killed-accepting", records("append", 100))
    lake.go()
    assert proof(lake).ok, proof(lake).problems


def test_a_delete_that_a_restore_took_back_is_refused(lake: SparkLake) -> None:
    table = filled(lake, "restored-delete", "append")
    version = by_spark(lake.spark, table, "auction = 7")
    DeltaTable(str(table)).restore(version - 1)
    with pytest.raises(ResumeRefused) as refused:
        accept(lake, version)
    assert "rolled back" in refused.value.found
    assert proof(lake).ok, proof(lake).problems
