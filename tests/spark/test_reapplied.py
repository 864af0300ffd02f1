"""Records that are applied once more, against the table that they left the first time.

Keys move between the partitions, so the order of the ledger decides.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.formats.decoder import decoder
from rivermouth.write.evaluation import staged
from rivermouth.write.landings.merge import Merge
from rivermouth.write.rows import Keyed, row_changes
from tests.landing import take_steps
from tests.spark.batch_table import BatchTable, keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = 10
Batch = list[RawRow]


def batches(seed: int, records: int, deleted: float) -> list[Batch]:
    """Three batches, each record with a status of its own; a part of them deletes."""
    dice, offsets = random.Random(seed), [0, 0]
    made: list[Batch] = []
    for _ in range(3):
        rows: Batch = []
        for _ in range(records):
            key, partition = dice.randrange(KEYS), dice.randrange(2)
            rank = dice.choice([None, 1, 2, 3])
            value = json.dumps({"order_id": key, "status": f"s{dice.random()}", "rank": rank})
            encoded = None if dice.random() < deleted else value.encode()
            rows.append((str(key).encode(), encoded, partition, offsets[partition]))
            offsets[partition] += 1
        made.append(rows)
    return made


def written(bench: Bench, pipeline: Pipeline, made: list[Batch]) -> BatchTable:
    """A table that was written batch by batch."""
    table = keyed_table(bench, pipeline)
    for rows in made:
        table.land(rows)
    return table


def again(table: BatchTable, made: list[Batch], since: int = 0) -> dict[str, int]:
    """Apply the batches from the one with the number ``since`` on once more."""
    plans = table.plans[since : len(made)]
    ranges = [(each.sequence, one) for each in plans for one in each.draft.ranges]
    rows: Keyed = resolve(table.pipeline.shape.again or "")(table.pipeline, ranges)
    site = replace(table.site, make=lambda: rows)
    raw = table.bench.raw([row for batch in made[since:] for row in batch])
    plan = table.plan([])
    table.plans.append(plan)
    folded = rows.fold(decoder(table.pipeline)(raw))
    with staged(folded, table.bench.folder / plan.commit) as changes:
        found = row_changes(changes, site.address.read(site.session), rows)
        take_steps(partial(Merge(site).stage_changes, changes, 1), plan)
    return found


def columns_of(table: BatchTable) -> list[str]:
    return table.site.address.read(table.site.session).columns


def rows_of(table: BatchTable) -> dict[int, Any]:
    rows = table.rows()
    assert len({each["order_id"] for each in rows}) == len(rows)
    return {each["order_id"]: each for each in rows}


def keys_in(made: list[Batch]) -> set[int]:
    return {int(row[0] or b"") for batch in made for row in batch}


def spoil(table: BatchTable, made: list[Batch], seed: int) -> None:
    """Others delete two rows, change two, and write one that a tombstone has deleted."""
    here = rows_of(table)
    some = random.Random(seed).sample(sorted(here), 4)
    gone, wrong = some[:2], some[2:]
    back = min(keys_in(made) - {*here})
    columns = ", ".join(columns_of(table)[1:])
    table.sql(f"DELETE FROM {{table}} WHERE order_id IN {tuple(gone)}")
    table.sql(f"UPDATE {{table}} SET status = 'wrong' WHERE order_id IN {tuple(wrong)}")
    copied = f"SELECT {back}, {columns} FROM {{table}} WHERE order_id = {wrong[0]}"
    table.sql(f"INSERT INTO {{table}} {copied}")


@pytest.mark.thorough
@pytest.mark.parametrize("ordered", [True, False], ids=["order_by", "ledger"])
def test_all_records_once_more_lead_where_they_led_before(bench: Bench, ordered: bool) -> None:
    seed = 2 * ordered
    made = batches(seed, 14, 0.25)
    table = written(bench, a_pipeline() if ordered else a_pipeline(order_by=()), made)
    right = rows_of(table)
    spoil(table, made, seed)
    assert rows_of(table) != right

    found = again(table, made)

    assert rows_of(table) == right, f"seed {seed}"
    assert found == {"inserted": 2, "updated": 2, "deleted": 1}
    assert again(table, made) == dict.fromkeys(("inserted", "updated", "deleted"), 0)
    assert rows_of(table) == right


@pytest.mark.thorough
def test_the_last_batches_once_more_put_right_the_keys_that_they_hold(bench: Bench) -> None:
    made = batches(7, 14, 0.25)
    table = written(bench, a_pipeline(order_by=()), made)
    right, touched = rows_of(table), keys_in(made[-1:])
    assert touched < keys_in(made)
    spoil(table, made, 7)
    spoilt = rows_of(table)

    again(table, made, len(made) - 1)

    now = rows_of(table)
    for key in range(KEYS):
        assert now.get(key) == (right if key in touched else spoilt).get(key), f"key {key}"


def first_values(made: list[Batch]) -> dict[int, str]:
    """The rule in Python: of each key the record of the first batch, then of the least place."""
    found: dict[int, str] = {}
    for batch in made:
        for _, value, _, _ in sorted(batch, key=lambda row: row[2:]):
            record = json.loads(value or b"")
            found.setdefault(record["order_id"], record["status"])
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_all_records_once_more_leave_the_first_of_each_key(bench: Bench, seed: int) -> None:
    made, dice = batches(seed, 10, 0), random.Random(seed)
    right = first_values(made)
    table = written(bench, a_pipeline(mode="insert", order_by=(), key=None), made[:2])
    early = dice.choice(sorted({*rows_of(table)} & keys_in(made[2:])))
    table.sql(f"DELETE FROM {{table}} WHERE order_id = {early}")
    table.land(made[2])
    assert rows_of(table)[early]["status"] != right[early], "a repeat has become the first row"
    gone, status, place = dice.sample(sorted({*right} - {early}), 3)
    table.sql(f"DELETE FROM {{table}} WHERE order_id = {gone}")
    table.sql(f"UPDATE {{table}} SET status = NULL WHERE order_id = {status}")
    table.sql(f"UPDATE {{table}} SET _kafka = NULL WHERE order_id = {place}")

    assert again(table, made) == {"inserted": 1, "updated": 3, "deleted": 0}

    assert {key: row["status"] for key, row in rows_of(table).items()} == right
    assert all(row["_kafka"] is not None for row in rows_of(table).values())
    assert again(table, made) == dict.fromkeys(("inserted", "updated", "deleted"), 0)
