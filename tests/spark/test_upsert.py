"""The upsert against a fold in plain Python: record by record, batch by batch."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import Observation

from rivermouth.errors import CommitConflict
from rivermouth.protocol.commits import Outcome
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.spark_commits import TXN_APP_ID, TXN_VERSION, USER_METADATA
from rivermouth.warehouse.tables import TOMBSTONE
from rivermouth.write.landings.merge import MATERIALIZE_SOURCE, Merge
from tests.spark.batch_table import LANDINGS, WAYS, BatchTable, keyed_table
from tests.spark.conftest import Bench, RawRow, a_pipeline
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Row = tuple[int | None, int, int]  # rank, partition, offset: the state of one key


@pytest.fixture(params=WAYS)
def table(request: pytest.FixtureRequest, bench: Bench) -> BatchTable:
    """A new table, one after the other for both ways."""
    return keyed_table(bench, a_pipeline(), request.param)


def order(key: int, rank: int | None) -> bytes:
    return json.dumps({"order_id": key, "status": "x", "rank": rank}).encode()


def folded(state: dict[int, Row], rows: Sequence[RawRow]) -> dict[int, Row]:
    """The state after ``rows`` one by one; right for keys that stay in one partition."""
    state = dict(state)
    for key, value, partition, offset in rows:
        number = int(key or b"")
        if value is None:
            state.pop(number, None)
            continue
        new: Row = (json.loads(value)["rank"], partition, offset)
        old = state.get(number)
        if old is None or _ranked(new) > _ranked(old):
            state[number] = new
    return state


def _ranked(row: Row) -> tuple[bool, int, int, int]:
    return (row[0] is not None, row[0] or 0, row[1], row[2])


def state_of(table: BatchTable) -> dict[int, Row]:
    rows = table.rows()
    assert [row for row in rows if row.get("_tombstone")] == [], "marked and not removed"
    assert len({row["order_id"] for row in rows}) == len(rows), "a key twice"
    return {
        row["order_id"]: (row["rank"], row["_kafka"]["partition"], row["_kafka"]["offset"])
        for row in rows
    }


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_batches_lead_where_the_records_one_by_one_lead(table: BatchTable, seed: int) -> None:
    dice = random.Random(seed)
    state: dict[int, Row] = {}
    offsets = [0, 0]
    for _ in range(5):
        rows: list[RawRow] = []
        for _ in range(dice.choice([1, 12, 40])):
            key = dice.randrange(8)
            value = None if dice.random() < 0.25 else order(key, dice.choice([None, 1, 2, 3]))
            rows.append((str(key).encode(), value, key % 2, offsets[key % 2]))
            offsets[key % 2] += 1

        plan = table.land(rows)

        assert table.outcome(plan) is Outcome.COMMITTED
        state = folded(state, rows)
        assert state_of(table) == state, f"seed {seed}, batch {plan.sequence}: {rows}"


@pytest.mark.thorough
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_moves_to_another_partition_keeps_its_newest_row(
    bench: Bench, way: str, ordered: bool
) -> None:
    table = keyed_table(bench, a_pipeline() if ordered else a_pipeline(order_by=()), way)
    table.land([(b"1", order(1, 5), 1, 0), (b"2", order(2, 5), 1, 1)])
    table.land([(b"1", order(1, 4), 0, 0), (b"2", order(2, 6), 0, 1)])
    assert state_of(table) == {1: (5, 1, 0) if ordered else (4, 0, 0), 2: (6, 0, 1)}


@pytest.mark.thorough
def test_a_row_of_another_partition_is_deleted_by_a_later_tombstone(table: BatchTable) -> None:
    table.land([(b"1", order(1, 5), 0, 0)])
    table.land([(b"1", None, 1, 0)])
    assert state_of(table) == {}


@pytest.mark.thorough
def test_a_stale_sequence_is_skipped_in_silence_and_told_by_reading_back(
    table: BatchTable,
) -> None:
    ours: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    lost = table.plan(ours)
    table.land([(b"2", order(2, 1), 0, 0), (b"3", order(3, 1), 0, 1)])

    with suppress(CommitConflict):
        table.land(ours, lost)

    assert table.outcome(lost) is Outcome.SUPERSEDED
    assert set(state_of(table)) == {2, 3}


@pytest.mark.thorough
def test_the_session_keeps_no_conf_of_a_merge_not_even_of_a_failed_one(bench: Bench) -> None:
    table = keyed_table(bench, a_pipeline())
    rows: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    table.land(rows)
    broken = Merge(table.site)
    broken._statement = broken._statement.replace(table.site.address.sql, bench.address("none").sql)
    table.landing = broken

    with pytest.raises(Exception, match="none"):
        table.land(rows, bench.plan(2, rows, Position()))

    for conf in (TXN_APP_ID, TXN_VERSION, USER_METADATA, MATERIALIZE_SOURCE):
        assert bench.spark.conf.get(conf, None) is None


class _Crash(Exception):
    """The driver dies here."""


@pytest.mark.thorough
@pytest.mark.parametrize("next_by", WAYS)
def test_a_row_that_a_dead_driver_left_marked_counts_as_absent_for_the_next_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, next_by: str
) -> None:
    table = keyed_table(bench, a_pipeline(), "replaceUsing")
    table.land([(b"1", order(1, 5), 0, 0), (b"2", order(2, 5), 0, 1)])
    deleting: list[RawRow] = [(b"1", None, 0, 2), (b"2", None, 0, 3)]
    died = table.plan(deleting)
    with monkeypatch.context() as patched:
        patched.setattr("rivermouth.write.landings.replace_using.reach", _die)
        with pytest.raises(_Crash):
            table.land(deleting, died)
    table.plans.append(died)
    assert [(row["order_id"], row[TOMBSTONE]) for row in table.rows()] == [(1, True), (2, True)]

    table.landing = LANDINGS[next_by](table.site)
    table.land([(b"1", order(1, 1), 0, 4)])  # ranks lower than what was deleted

    rows = table.rows()
    assert [(row["order_id"], row["rank"]) for row in rows if not row[TOMBSTONE]] == [(1, 1)]
    marked = [row["order_id"] for row in rows if row[TOMBSTONE]]
    assert marked == ([] if next_by == "replaceUsing" else [2]), "MERGE removes no row of others"


def _die(point: str) -> None:
    raise _Crash(point)


@pytest.mark.thorough
def test_what_others_keep_in_columns_of_their_own_outlives_a_replacement(bench: Bench) -> None:
    table = keyed_table(bench, a_pipeline(key=None), "replaceUsing")
    table.sql("ALTER TABLE {table} ADD COLUMN (note STRING)")
    table.land([(b"1", order(1, 5), 0, 0)])
    table.sql("UPDATE {table} SET note = 'kept'")

    table.land([(b"1", order(1, 6), 0, 1)])

    (row,) = table.rows()
    assert (row["rank"], row["note"]) == (6, "kept")


@pytest.mark.thorough
def test_bad_records_go_to_quarantine_whatever_a_metric_says(
    table: BatchTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may count a metric twice, or lose it: here it has lost all that it counted."""
    monkeypatch.setattr(Observation, "get", property(lambda _: Lost(counts="[]", deleting=0)))

    plan = table.land([(b"1", order(1, 5), 0, 0), (b"2", b"bad", 0, 1), (None, None, 1, 0)])

    assert table.outcome(plan) is Outcome.COMMITTED
    assert state_of(table) == {1: (5, 0, 0)}
    assert table.bad(plan.commit) == {(0, 1): "RM603", (1, 0): "RM604"}
    assert table.entry.rows == (RowCounts(1, 1), RowCounts(0, 1))


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS)
def test_on_a_cluster_a_metric_that_counted_twice_is_noticed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Two records in five offsets, as transactions leave them. A lost executor was replaced."""
    table = keyed_table(bench, a_pipeline(), way, one_host=False)
    twice = {"counts": '[{"x": 0, "y": 4}]', "deleting": 0}
    monkeypatch.setattr(Observation, "get", property(lambda _: twice))

    table.land([(b"1", None, 0, 1), (b"1", order(1, 5), 0, 4)])

    assert table.entry.rows == (RowCounts(2, 0),)
    assert state_of(table) == {1: (5, 0, 4)}


@pytest.mark.thorough
def test_what_a_merge_has_written_down_is_not_kept(bench: Bench) -> None:
    """Spark forgets a checkpoint with the DataFrame that leads to it."""
    table, context = keyed_table(bench, a_pipeline()), bench.spark.sparkContext

    def kept() -> set[int]:
        gc.collect()
        assert context._jvm is not None
        context._jvm.System.gc()
        return {*context._jsc.getPersistentRDDs()}

    before = kept()
    for number in range(3):
        table.land([(b"1", order(1, number), 0, number)])

    wait_for(lambda: len(kept() - before) <= 1, "each batch leaves its changes in memory")


class Lost(dict[str, Any]):
    """The metrics of a job; the number of written bad records is as it should be."""

    def __missing__(self, name: str) -> int:
        assert name == "written"
        return 2
