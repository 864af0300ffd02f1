"""What the tests of a cluster run: kinds of pipelines, each with more records than one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.cluster.lake import ClusterLake
from tests.lake import BIDS, append_pipeline
from tests.modes import MODES, Mode

RECORDS, PER_BATCH = 4_000, 500
OWN = """
from pyspark.sql import functions as F

def rows(records, batch):
    return records.where(F.col("price") % 7 != 0)
"""


def own_code(topic: str, **source: Any) -> dict[str, Any]:
    """An append of what a function beside the configuration makes of the records."""
    made = append_pipeline(topic, **source)
    target = {**made["target"], "schema": BIDS}
    return {**made, "transform": f"{module_of(topic)}:rows", "target": target}


def module_of(topic: str) -> str:
    """A module of a name of its own: in one process a name is one module."""
    return topic.replace("-", "_")


KINDS: Mapping[str, Mode] = {
    **{each: MODES[each] for each in ("append", "upsert", "sums", "avro")},
    "own": replace(MODES["append"], pipeline=own_code),
}


def lake_of(lake: ClusterLake, topic: str, kind: str) -> int:
    """A lake with the pipeline ``p``, and how many records wait for it."""
    lake.topic(topic, 4)
    (lake.folder / f"{module_of(topic)}.py").write_text(OWN)
    lake.configure(p=KINDS[kind].pipeline(topic, max_offsets_per_trigger=PER_BATCH))
    return lake.produce(topic, KINDS[kind].records(RECORDS, seed=1, keys=500))
