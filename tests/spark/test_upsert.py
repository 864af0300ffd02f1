"""The upsert against a fold in plain Python: record by record, batch by batch."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import Observation

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.spark_commits import TXN_APP_ID, TXN_VERSION, USER_METADATA
from rivermouth.warehouse.tables import TOMBSTONE, add_tombstone_column, create_target
from rivermouth.write.landing import Landing, RawBatch, Site
from rivermouth.write.landings.merge import MATERIALIZE_SOURCE, Merge
from rivermouth.write.landings.replace_using import ReplaceUsing
from rivermouth.write.rows import Keyed
from tests.landing import land
from tests.spark.conftest import Bench, RawRow, a_pipeline
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Row = tuple[int | None, int, int]  # rank, partition, offset: the state of one key


@pytest.fixture(params=["by MERGE", "by replaceUsing"])
def upsert(request: pytest.FixtureRequest, bench: Bench) -> Landing:
    """A landing on a new table, one after the other in both ways."""
    marked = request.param != "by MERGE"
    site = new_site(bench, a_pipeline(), marked=marked)
    return by_replace(site) if marked else Merge(site)


def new_site(bench: Bench, pipeline: Pipeline, *, marked: bool = False) -> Site:
    site = bench.site(pipeline, "orders")
    create_target(bench.spark, pipeline, site.address)
    if marked:
        add_tombstone_column(bench.spark, site.address)
    return site


def by_replace(site: Site, *, marked: bool = True) -> ReplaceUsing:
    """Without the trial of the engine, which needs a catalog."""
    assert isinstance(site.rows, Keyed)
    return ReplaceUsing(site, site.rows, marked=marked)


@pytest.fixture
def log(bench: Bench) -> FolderLog:
    return FolderLog(bench.folder / "orders")


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


def table_of(bench: Bench) -> dict[int, Row]:
    rows = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert [row for row in rows if row.get("_tombstone")] == [], "marked and not removed"
    assert len({row["order_id"] for row in rows}) == len(rows), "a key twice"
    return {
        row["order_id"]: (row["rank"], row["_kafka"]["partition"], row["_kafka"]["offset"])
        for row in rows
    }


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_batches_lead_where_the_records_one_by_one_lead(
    bench: Bench, upsert: Landing, log: FolderLog, seed: int
) -> None:
    dice = random.Random(seed)
    state: dict[int, Row] = {}
    position, offsets = Position(), [0, 0]
    for sequence in range(1, 6):
        rows: list[RawRow] = []
        for _ in range(dice.choice([1, 12, 40])):
            key = dice.randrange(8)
            value = None if dice.random() < 0.25 else order(key, dice.choice([None, 1, 2, 3]))
            rows.append((str(key).encode(), value, key % 2, offsets[key % 2]))
            offsets[key % 2] += 1
        plan = bench.plan(sequence, rows, position)
        position = plan.draft.position

        land(upsert, RawBatch(bench.raw(rows), decoder(a_pipeline())), plan)

        assert classify(plan, log.commits()) is Outcome.COMMITTED
        state = folded(state, rows)
        assert table_of(bench) == state, f"seed {seed}, batch {sequence}: {rows}"


@pytest.mark.thorough
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("land_by", ["MERGE", "replaceUsing"])
def test_a_key_that_moves_to_another_partition_keeps_its_newest_row(
    bench: Bench, land_by: str, ordered: bool
) -> None:
    pipeline = a_pipeline() if ordered else a_pipeline(order_by=())
    site = new_site(bench, pipeline, marked=land_by != "MERGE")
    landing: Landing = Merge(site) if land_by == "MERGE" else by_replace(site)
    first: list[RawRow] = [(b"1", order(1, 5), 1, 0), (b"2", order(2, 5), 1, 1)]
    later: list[RawRow] = [(b"1", order(1, 4), 0, 0), (b"2", order(2, 6), 0, 1)]
    plan = bench.plan(1, first, Position())
    land(landing, RawBatch(bench.raw(first), decoder(pipeline)), plan)

    plan = bench.plan(2, later, plan.draft.position)
    land(landing, RawBatch(bench.raw(later), decoder(pipeline)), plan)

    assert table_of(bench) == {1: (5, 1, 0) if ordered else (4, 0, 0), 2: (6, 0, 1)}


@pytest.mark.thorough
def test_a_row_of_another_partition_is_deleted_by_a_later_tombstone(
    bench: Bench, upsert: Landing
) -> None:
    rows: list[RawRow] = [(b"1", order(1, 5), 0, 0)]
    first = bench.plan(1, rows, Position())
    land(upsert, RawBatch(bench.raw(rows), decoder(a_pipeline())), first)
    later: list[RawRow] = [(b"1", None, 1, 0)]

    land(
        upsert,
        RawBatch(bench.raw(later), decoder(a_pipeline())),
        bench.plan(2, later, first.draft.position),
    )

    assert table_of(bench) == {}


@pytest.mark.thorough
def test_a_stale_sequence_is_skipped_in_silence_and_told_by_reading_back(
    bench: Bench, upsert: Landing, log: FolderLog
) -> None:
    ours: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    theirs: list[RawRow] = [(b"2", order(2, 1), 0, 0), (b"3", order(3, 1), 0, 1)]
    won = bench.plan(1, theirs, Position())
    land(upsert, RawBatch(bench.raw(theirs), decoder(a_pipeline())), won)
    lost = bench.plan(1, ours, Position())

    land(upsert, RawBatch(bench.raw(ours), decoder(a_pipeline())), lost)

    assert classify(lost, log.commits()) is Outcome.SUPERSEDED
    assert set(table_of(bench)) == {2, 3}


@pytest.mark.thorough
def test_the_session_keeps_no_conf_of_a_merge_not_even_of_a_failed_one(bench: Bench) -> None:
    site = new_site(bench, a_pipeline())
    upsert = Merge(site)
    rows: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    land(upsert, RawBatch(bench.raw(rows), decoder(a_pipeline())), bench.plan(1, rows, Position()))
    broken = Merge(site)
    broken._statement = broken._statement.replace(site.address.sql, bench.address("none").sql)

    with pytest.raises(Exception, match="none"):
        land(
            broken,
            RawBatch(bench.raw(rows), decoder(a_pipeline())),
            bench.plan(2, rows, Position()),
        )

    for conf in (TXN_APP_ID, TXN_VERSION, USER_METADATA, MATERIALIZE_SOURCE):
        assert bench.spark.conf.get(conf, None) is None


class _Crash(Exception):
    """The driver dies here."""


@pytest.mark.thorough
@pytest.mark.parametrize("next_by", ["replaceUsing", "MERGE"])
def test_a_row_that_a_dead_driver_left_marked_counts_as_absent_for_the_next_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, next_by: str
) -> None:
    site = new_site(bench, a_pipeline(), marked=True)
    rows: list[RawRow] = [(b"1", order(1, 5), 0, 0), (b"2", order(2, 5), 0, 1)]
    first = bench.plan(1, rows, Position())
    decode = decoder(a_pipeline())
    land(by_replace(site), RawBatch(bench.raw(rows), decode), first)
    deleting: list[RawRow] = [(b"1", None, 0, 2), (b"2", None, 0, 3)]
    second = bench.plan(2, deleting, first.draft.position)
    with monkeypatch.context() as patched:
        patched.setattr("rivermouth.write.landings.replace_using.reach", _die)
        with pytest.raises(_Crash):
            land(by_replace(site), RawBatch(bench.raw(deleting), decode), second)
    left = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert [(row["order_id"], row[TOMBSTONE]) for row in left] == [(1, True), (2, True)]

    again: list[RawRow] = [(b"1", order(1, 1), 0, 4)]  # ranks lower than what was deleted
    landing: Landing = by_replace(site) if next_by == "replaceUsing" else Merge(site)
    land(landing, RawBatch(bench.raw(again), decode), bench.plan(3, again, second.draft.position))

    rows_left = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    live = [(row["order_id"], row["rank"]) for row in rows_left if not row[TOMBSTONE]]
    assert live == [(1, 1)]
    marked = [row["order_id"] for row in rows_left if row[TOMBSTONE]]
    assert marked == ([] if next_by == "replaceUsing" else [2]), "MERGE removes no row of others"


def _die(point: str) -> None:
    raise _Crash(point)


@pytest.mark.thorough
def test_what_others_keep_in_columns_of_their_own_outlives_a_replacement(bench: Bench) -> None:
    site = new_site(bench, a_pipeline(key=None))
    bench.spark.sql(f"ALTER TABLE {site.address.sql} ADD COLUMN (note STRING)")
    replace = by_replace(site, marked=False)
    rows: list[RawRow] = [(b"1", order(1, 5), 0, 0)]
    first = bench.plan(1, rows, Position())
    land(replace, RawBatch(bench.raw(rows), decoder(a_pipeline(key=None))), first)
    bench.spark.sql(f"UPDATE {site.address.sql} SET note = 'kept'")
    newer: list[RawRow] = [(b"1", order(1, 6), 0, 1)]

    land(
        replace,
        RawBatch(bench.raw(newer), decoder(a_pipeline(key=None))),
        bench.plan(2, newer, first.draft.position),
    )

    (row,) = DeltaTable(str(bench.folder / "orders")).to_pyarrow_table().to_pylist()
    assert (row["rank"], row["note"]) == (6, "kept")


@pytest.mark.thorough
def test_bad_records_go_to_quarantine_whatever_a_metric_says(
    bench: Bench, upsert: Landing, log: FolderLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may count a metric twice, or lose it: here it has lost all that it counted."""
    monkeypatch.setattr(Observation, "get", property(lambda _: Lost(counts="[]", deleting=0)))
    rows: list[RawRow] = [(b"1", order(1, 5), 0, 0), (b"2", b"bad", 0, 1), (None, None, 1, 0)]
    plan = bench.plan(1, rows, Position())

    land(upsert, RawBatch(bench.raw(rows), decoder(a_pipeline())), plan)

    assert classify(plan, log.commits()) is Outcome.COMMITTED
    assert table_of(bench) == {1: (5, 0, 0)}
    held = DeltaTable(str(bench.folder / "orders_quarantine")).to_pyarrow_table().to_pylist()
    assert sorted((row["commit"], row["code"]) for row in held) == [
        (plan.commit, "RM603"),
        (plan.commit, "RM604"),
    ]
    entry = entry_of([*log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(1, 1), RowCounts(0, 1))


@pytest.mark.thorough
@pytest.mark.parametrize("land_by", ["MERGE", "replaceUsing"])
def test_on_a_cluster_a_metric_that_counted_twice_is_noticed(
    bench: Bench, log: FolderLog, monkeypatch: pytest.MonkeyPatch, land_by: str
) -> None:
    """Two records in five offsets, as transactions leave them. A lost executor was replaced."""
    site = replace(new_site(bench, a_pipeline(), marked=land_by != "MERGE"), tasks=None)
    landing: Landing = Merge(site) if land_by == "MERGE" else by_replace(site)
    twice = {"counts": '[{"x": 0, "y": 4}]', "deleting": 0}
    monkeypatch.setattr(Observation, "get", property(lambda _: twice))
    rows: list[RawRow] = [(b"1", None, 0, 1), (b"1", order(1, 5), 0, 4)]
    plan = bench.plan(1, rows, Position())

    land(landing, RawBatch(bench.raw(rows), decoder(a_pipeline())), plan)

    entry = entry_of([*log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(2, 0),)
    assert table_of(bench) == {1: (5, 0, 4)}


@pytest.mark.thorough
def test_what_a_merge_has_written_down_is_not_kept(bench: Bench) -> None:
    """Spark forgets a checkpoint with the DataFrame that leads to it."""
    landing, position = Merge(new_site(bench, a_pipeline())), Position()
    context = bench.spark.sparkContext

    def kept() -> set[int]:
        gc.collect()
        assert context._jvm is not None
        context._jvm.System.gc()
        return {*context._jsc.getPersistentRDDs()}

    before = kept()
    for number in range(3):
        rows: list[RawRow] = [(b"1", order(1, number), 0, number)]
        plan = bench.plan(number + 1, rows, position)
        land(landing, RawBatch(bench.raw(rows), decoder(a_pipeline())), plan)
        position = plan.draft.position

    wait_for(lambda: len(kept() - before) <= 1, "each batch leaves its changes in memory")


class Lost(dict[str, Any]):
    """The metrics of a job; the number of written bad records is as it should be."""

    def __missing__(self, name: str) -> int:
        assert name == "written"
        return 2
