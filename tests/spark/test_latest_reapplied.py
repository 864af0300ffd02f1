"""Records that are applied once more, against the table that they left the first time.

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
from rivermouth.warehouse.tables import add_tombstone_column, create_target
from rivermouth.write.evaluation import staged
from rivermouth.write.landing import Changes, Landing, RawBatch
from rivermouth.write.landings.merge import Merge
from rivermouth.write.landings.replace_using import ReplaceUsing
from rivermouth.write.rows import Keyed, RowChanges, row_changes
from rivermouth.write.shapes.by_key import latest_reapplied
from tests.landing import land
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS, BATCHES = 10, 3
Batch = list[RawRow]


def batches(seed: int) -> list[Batch]:
    dice, offsets = random.Random(seed), [0, 0]
    made: list[Batch] = []
    for _ in range(BATCHES):
        rows: Batch = []
        for _ in range(14):
            key, partition = dice.randrange(KEYS), dice.randrange(2)
            rank = dice.choice([None, 1, 2, 3])
            value = json.dumps({"order_id": key, "status": f"s{dice.random()}", "rank": rank})
            deletes = dice.random() < 0.25
            rows.append(
                (
                    str(key).encode(),
                    None if deletes else value.encode(),
                    partition,
                    offsets[partition],
                )
            )
            offsets[partition] += 1
        made.append(rows)
    return made


class Table:
    """A table that was written batch by batch, and may be changed by others."""

    def __init__(self, bench: Bench, *, ordered: bool, marked: bool) -> None:
        self.bench, self.marked = bench, marked
        self.pipeline = a_pipeline() if ordered else a_pipeline(order_by=())
        self.site = bench.site(self.pipeline, "orders")
        create_target(bench.spark, self.pipeline, self.site.address)
        if marked:
            add_tombstone_column(bench.spark, self.site.address)
        self.plans: list[CommitPlan] = []

    def landing(self, rows: Keyed) -> Landing:
        site = replace(self.site, rows=rows)
        return ReplaceUsing(site, rows, marked=True) if self.marked else Merge(site)

    def land(self, made: list[Batch]) -> None:
        assert isinstance(self.site.rows, Keyed)
        position, landing = Position(), self.landing(self.site.rows)
        for number, rows in enumerate(made, 1):
            plan = self.bench.plan(number, rows, position)
            land(landing, RawBatch(self.bench.raw(rows), decoder(self.pipeline)), plan)
            self.plans.append(plan)
            position = plan.draft.position

    def again(self, made: list[Batch], since: int) -> RowChanges:
        """Apply the batches from the one with the number ``since`` on once more."""
        ranges: list[tuple[int, OffsetRange]] = [
            (each.sequence, one) for each in self.plans[since:] for one in each.draft.ranges
        ]
        rows = latest_reapplied(self.pipeline, ranges)
        raw = self.bench.raw([row for batch in made[since:] for row in batch])
        landing = self.landing(rows)
        plan = self.bench.plan(len(self.plans) + 1, [], self.plans[-1].draft.position)
        self.plans.append(plan)
        folded = rows.fold(decoder(self.pipeline)(raw))
        with staged(folded, self.bench.folder / plan.commit) as changes:
            found = row_changes(changes, self.site.address.read(self.bench.spark), rows)
            land(landing, Changes(changes, 1), plan)
        return found

    def rows(self) -> dict[int, Any]:
        rows = DeltaTable(str(self.bench.folder / "orders")).to_pyarrow_table().to_pylist()
        assert len({each["order_id"] for each in rows}) == len(rows)
        return {each["order_id"]: each for each in rows}

    def spoil(self, made: list[Batch], seed: int) -> None:
        """Others delete two rows, change two, and write one that a tombstone has deleted."""
        here, table = self.rows(), self.site.address.sql
        some = random.Random(seed).sample(sorted(here), 4)
        gone, wrong = some[:2], some[2:]
        back = min(keys_in(made) - {*here})
        columns = "status, rank, _kafka" + (", _tombstone" if self.marked else "")
        for statement in (
            f"DELETE FROM {table} WHERE order_id IN {tuple(gone)}",
            f"UPDATE {table} SET status = 'wrong' WHERE order_id IN {tuple(wrong)}",
            f"INSERT INTO {table} SELECT {back}, {columns} FROM {table}"
            f" WHERE order_id = {wrong[0]}",
        ):
            self.bench.spark.sql(statement)


@pytest.mark.thorough
@pytest.mark.parametrize("marked", [False, True], ids=["MERGE", "replaceUsing"])
@pytest.mark.parametrize("ordered", [True, False], ids=["order_by", "ledger"])
def test_all_records_once_more_lead_where_they_led_before(
    bench: Bench, ordered: bool, marked: bool
) -> None:
    seed = 2 * ordered + marked
    made, table = batches(seed), Table(bench, ordered=ordered, marked=marked)
    table.land(made)
    right = table.rows()
    table.spoil(made, seed)
    assert table.rows() != right

    found = table.again(made, 0)

    assert table.rows() == right, f"seed {seed}"
    assert found == RowChanges(inserted=2, updated=2, deleted=1)
    assert table.again(made, 0) == RowChanges(0, 0, 0)
    assert table.rows() == right


@pytest.mark.thorough
def test_the_last_batches_once_more_put_right_the_keys_that_they_hold(bench: Bench) -> None:
    made, table = batches(7), Table(bench, ordered=False, marked=False)
    table.land(made)
    right, touched = table.rows(), keys_in(made[-1:])
    assert touched < keys_in(made)
    table.spoil(made, 7)
    spoilt = table.rows()

    table.again(made, BATCHES - 1)

    now = table.rows()
    for key in range(KEYS):
        assert now.get(key) == (right if key in touched else spoilt).get(key), f"key {key}"


def keys_in(made: list[Batch]) -> set[int]:
    return {int(row[0] or b"") for batch in made for row in batch}
