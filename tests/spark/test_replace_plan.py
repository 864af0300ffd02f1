"""How Spark joins a few changes with a large table where rows are replaced by key."""

from __future__ import annotations

import json
import random

import pytest

from rivermouth.formats.decoder import decoder
from rivermouth.write.landings.replace_using import replaced_rows
from rivermouth.write.rows import Keyed
from tests.spark.batch_table import keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_THRESHOLDS = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
)


def order(key: int, rank: int) -> bytes:
    return json.dumps({"order_id": key, "status": "x", "rank": rank}).encode()


@pytest.mark.thorough
def test_few_changes_are_broadcast_and_the_table_is_not_shuffled(
    bench: Bench,
) -> None:
    orders = keyed_table(bench, a_pipeline())
    rows = orders.site.rows
    assert isinstance(rows, Keyed)
    orders.land([(b"%d" % key, order(key, 5), 0, key) for key in range(20)])
    dice = random.Random(3)
    raw: list[RawRow] = []
    for offset in range(20, 60):
        key = dice.randrange(40)
        change = None if dice.random() < 0.3 else order(key, dice.randrange(10))
        raw.append((b"%d" % key, change, 0, offset))
    changes = rows.fold(decoder(orders.pipeline)(bench.raw(raw))).localCheckpoint()
    table = bench.address("orders").read(bench.spark)
    before = {name: bench.spark.conf.get(name, None) for name in _THRESHOLDS}
    try:
        for name in _THRESHOLDS:  # so that nothing but the hint makes it a broadcast
            bench.spark.conf.set(name, "-1")
        small = replaced_rows(changes, table, rows, marked=False, small=True)
        large = replaced_rows(changes, table, rows, marked=False, small=False)
        plan = small._jdf.queryExecution().executedPlan().toString()
        found, expected = small.collect(), large.collect()
    finally:
        for name, value in before.items():
            bench.spark.conf.unset(name) if value is None else bench.spark.conf.set(name, value)

    assert "BroadcastHashJoin" in plan
    assert "SortMergeJoin" not in plan
    assert "ShuffledHashJoin" not in plan
    assert "hashpartitioning" not in plan
    assert small.columns == large.columns == table.columns
    assert len(expected) > 10
    assert sorted(found) == sorted(expected)
