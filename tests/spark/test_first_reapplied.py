"""First records that are applied once more, against the table that they left the first time.

Keys move between the partitions, so the order of the ledger decides.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import Changes, RawBatch
from rivermouth.write.landings.merge import Merge
from rivermouth.write.rows import Keyed, RowChanges, row_changes
from rivermouth.write.shapes.by_key import first_reapplied
from tests.landing import land
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PIPELINE = a_pipeline(mode="insert", order_by=(), key=None)
Batch = list[RawRow]


def batches(seed: int) -> list[Batch]:
    """Three batches of good records, each with a status of its own."""
    dice, offsets = random.Random(seed), [0, 0]
    made: list[Batch] = []
    for _ in range(3):
        rows: Batch = []
        for _ in range(10):
            key, partition = dice.randrange(10), dice.randrange(2)
            value = json.dumps({"order_id": key, "status": f"s{dice.random()}", "rank": 1})
            rows.append((None, value.encode(), partition, offsets[partition]))
            offsets[partition] += 1
        made.append(rows)
    return made


def first_values(made: list[Batch]) -> dict[int, str]:
    """The rule in Python: of each key the record of the first batch, then of the least place."""
    found: dict[int, str] = {}
    for batch in made:
        for _, value, _, _ in sorted(batch, key=lambda row: row[2:]):
            record = json.loads(value or b"")
            found.setdefault(record["order_id"], record["status"])
    return found


class Table:
    """A table that was written batch by batch, and may be changed by others."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.address = bench, bench.address("orders")
        create_target(bench.spark, PIPELINE, self.address)
        self.plans: list[CommitPlan] = []

    def land(self, batch: Batch) -> None:
        position = self.plans[-1].draft.position if self.plans else Position()
        plan = self.bench.plan(len(self.plans) + 1, batch, position)
        raw = self.bench.raw(batch)
        land(Merge(self.bench.site(PIPELINE, "orders")), RawBatch(raw, decoder(PIPELINE)), plan)
        self.plans.append(plan)

    def again(self, made: list[Batch]) -> RowChanges:
        """Apply all batches once more."""
        ranges: list[tuple[int, OffsetRange]] = [
            (each.sequence, one) for each in self.plans for one in each.draft.ranges
        ]
        rows: Keyed = first_reapplied(PIPELINE, ranges)
        raw = self.bench.raw([row for batch in made for row in batch])
        changes = rows.fold(decoder(PIPELINE)(raw)).localCheckpoint()
        found = row_changes(changes, self.address.read(self.bench.spark), rows)
        site = self.bench.site(PIPELINE, "orders")
        plan = self.bench.plan(len(self.plans) + 1, [], self.plans[-1].draft.position)
        land(Merge(replace(site, rows=rows)), Changes(changes, 1), plan)
        return found

    def rows(self) -> dict[int, Any]:
        rows = DeltaTable(str(self.bench.folder / "orders")).to_pyarrow_table().to_pylist()
        assert len({each["order_id"] for each in rows}) == len(rows)
        return {each["order_id"]: each for each in rows}

    def sql(self, statement: str) -> None:
        self.bench.spark.sql(statement.replace("TABLE", self.address.sql))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_all_records_once_more_leave_the_first_of_each_key(bench: Bench, seed: int) -> None:
    made, table, dice = batches(seed), Table(bench), random.Random(seed)
    right = first_values(made)
    for batch in made[:2]:
        table.land(batch)
    again = {json.loads(value or b"")["order_id"] for _, value, _, _ in made[2]}
    early = dice.choice(sorted({*table.rows()} & again))
    table.sql(f"DELETE FROM TABLE WHERE order_id = {early}")
    table.land(made[2])
    assert table.rows()[early]["status"] != right[early], "a repeat has become the first row"
    gone, status, place = dice.sample(sorted({*right} - {early}), 3)
    table.sql(f"DELETE FROM TABLE WHERE order_id = {gone}")
    table.sql(f"UPDATE TABLE SET status = NULL WHERE order_id = {status}")
    table.sql(f"UPDATE TABLE SET _kafka = NULL WHERE order_id = {place}")

    assert table.again(made) == RowChanges(inserted=1, updated=3, deleted=0)

    assert {key: row["status"] for key, row in table.rows().items()} == right
    assert all(row["_kafka"] is not None for row in table.rows().values())
    assert table.again(made) == RowChanges(0, 0, 0)
