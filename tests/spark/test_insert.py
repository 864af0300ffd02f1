"""The first row of a key stays, in both ways in which changes by key land."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome, classify
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import Landing, RawBatch
from rivermouth.write.landings.merge import Merge
from rivermouth.write.landings.replace_using import ReplaceUsing
from rivermouth.write.rows import Keyed
from tests.landing import land
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def value(key: int, status: str) -> bytes:
    return json.dumps({"order_id": key, "status": status, "rank": 0}).encode()


BATCHES: Sequence[Sequence[RawRow]] = [
    [(None, value(1, "a"), 0, 0), (None, value(1, "b"), 0, 1), (None, value(2, "a"), 1, 0)],
    [(None, value(2, "b"), 0, 2), (None, value(3, "a"), 1, 1)],
    [(None, value(1, "c"), 0, 3), (None, b"{oops", 0, 4)],
]
"""The last one changes no row."""


@pytest.fixture
def pipeline() -> Pipeline:
    return a_pipeline(mode="insert", order_by=(), key=None)


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["by MERGE", "by replaceUsing"])
def test_the_first_row_of_a_key_stays_and_every_batch_is_a_commit(
    bench: Bench, pipeline: Pipeline, way: str
) -> None:
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    assert isinstance(site.rows, Keyed)
    by_merge: Landing = Merge(site)
    landing = by_merge if way == "by MERGE" else ReplaceUsing(site, site.rows, marked=False)
    position = Position()
    for sequence, rows in enumerate(BATCHES, 1):
        plan = bench.plan(sequence, rows, position)
        position = plan.draft.position
        land(landing, RawBatch(bench.raw(rows), decoder(pipeline)), plan)
        log = FolderLog(bench.folder / "orders")
        assert classify(plan, log.commits()) is Outcome.COMMITTED

    table = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert sorted((row["order_id"], row["status"]) for row in table) == [
        (1, "a"),
        (2, "a"),
        (3, "a"),
    ]
