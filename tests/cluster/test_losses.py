"""Executors, workers and processes of Python that are lost in a batch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rivermouth.local.standalone import LocalCluster
from tests.cluster.executors import (
    a_worker,
    all_executors,
    its_python,
    one_executor,
    retired,
)
from tests.cluster.kinds import lake_of
from tests.cluster.lake import RETIRES, ClusterLake
from tests.faults.outcomes import check_proved
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]

LOSSES: Mapping[str, Callable[[LocalCluster], int]] = {
    "an executor": one_executor,
    "all executors": all_executors,
    "a worker": a_worker,
    "a process of Python": its_python,
    "a retired executor": retired,
}


LOST = (
    ("append", "an executor"),
    ("own", "an executor"),
    ("own", "all executors"),
    ("upsert", "all executors"),
    ("sums", "a worker"),
    ("upsert", "a process of Python"),
    ("avro", "a retired executor"),
)
"""Each kind and each loss, once at least; the torture brings them together in all ways."""


@pytest.mark.short(("kind", "loss"), {LOST[0]})
@pytest.mark.parametrize(("kind", "loss"), LOST)
def test_what_is_lost_in_a_batch_is_computed_again_and_counts_once(
    clustered: ClusterLake, kind: str, loss: str
) -> None:
    topic = f"lost-{kind}-{loss.replace(' ', '-')}"
    lake = replace(clustered, more=RETIRES)
    records = lake_of(lake, topic, kind)
    with lake.driver("p") as driver:
        struck, seen = 0, files(lake.warehouse)
        while driver.poll() is None and struck < 2:
            now = files(lake.warehouse)
            if now > seen and LOSSES[loss](lake.cluster):
                struck += 1
                time.sleep(1)
                now = files(lake.warehouse)
            seen = now
            time.sleep(0.02)
        said = said_by(driver)
    assert driver.returncode == 0, said
    assert struck, "the batches were over before anything was lost"
    check_proved(lake, records)


def files(folder: Path) -> int:
    """How many data files there are; folders come and go meanwhile."""
    names = (name for _, _, each in os.walk(folder) for name in each)
    return sum(1 for name in names if name.endswith(".parquet"))
