"""The offsets table of a real run: fewer commits than batches, and nothing is left out."""

from __future__ import annotations

import os

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.verification import Bounds, Verification, verify
from rivermouth.verification.kafka.client import client_options
from rivermouth.verification.pipeline import Checker
from rivermouth.verification.sharing import share
from rivermouth.verification.tables.lake import LakeTables
from tests.faults.outcomes import went_well
from tests.folders import lake_of
from tests.lake import Lake, append_pipeline, bid
from tests.unit.verification.sharing_tasks import Elsewhere

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BATCHES = 8


@pytest.mark.thorough
def test_three_pipelines_make_fewer_commits_in_the_offsets_table_than_batches(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    names = ["one", "two", "three"]
    for name in names:
        lake.topic(f"projected-{name}")
        lake.produce(f"projected-{name}", [(None, bid(n), 0) for n in range(10 * BATCHES)])
    lake.configure(
        **{each: append_pipeline(f"projected-{each}", max_offsets_per_trigger=10) for each in names}
    )

    heard = went_well(lake.run(rivermouth_spark, *names))

    assert [each.commits for each in heard.ends] == [BATCHES] * 3
    table = DeltaTable(str(lake.path("rivermouth.offsets")))
    assert table.version() < 3 * BATCHES
    assert len(lake.rows("rivermouth.offsets")) == 3 * (BATCHES + 1), "discovery, and each batch"
    config = load(lake.file)
    alone = verify(config)
    assert alone.ok, alone.as_dict()
    # A worker proves what this process proves.
    options, bounds = client_options(config), Bounds.of_every_value()
    checker = Checker(config, options, LakeTables(lake_of(config)), bounds, True, None, None)
    task = Elsewhere(checker, os.getpid(), lake.scratch)
    proofs = share(names, task, lambda _, attempt: attempt.proof, lambda *_: None, 2)
    shared = Verification(proofs)
    assert (lake.scratch / "proved").exists()
    assert shared.as_dict() == verify(config, strict=True, processes=3).as_dict()
    assert [each.records for each in shared.pipelines] == [each.records for each in alone.pipelines]
