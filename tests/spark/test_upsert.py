"""The upsert against a fold in plain Python: record by record, batch by batch."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.decode.json import decoder
from rivermouth.delta import DeltaLog
from rivermouth.ledger import Outcome, classify
from rivermouth.offsets import Position
from rivermouth.tables.quarantine import QuarantineTable
from rivermouth.tables.target import create_target
from rivermouth.write.commit import TXN_APP_ID, TXN_VERSION, USER_METADATA, Target
from rivermouth.write.upsert import MATERIALIZE_SOURCE, Upsert
from tests.spark.conftest import Bench, RawRow, a_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Row = tuple[int | None, int, int]  # rank, partition, offset: the state of one key


def writer(bench: Bench, pipeline: Pipeline) -> tuple[Upsert, DeltaLog]:
    """An upsert writer on a new table."""
    path = bench.folder / "orders"
    create_target(bench.spark, pipeline, str(path))
    names = tuple(each.name for each in pipeline.columns)
    target = Target(str(path), names, pipeline.target.keys, pipeline.target.order_by)
    quarantine = QuarantineTable(str(bench.folder / "orders_quarantine"))
    return Upsert(target, quarantine, tombstones=True), DeltaLog(path)


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
    assert len({row["order_id"] for row in rows}) == len(rows), "a key twice"
    return {
        row["order_id"]: (row["rank"], row["_kafka"]["partition"], row["_kafka"]["offset"])
        for row in rows
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_batches_lead_where_the_records_one_by_one_lead(bench: Bench, seed: int) -> None:
    dice = random.Random(seed)
    upsert, log = writer(bench, a_pipeline())
    state: dict[int, Row] = {}
    position, offsets = Position(), [0, 0]
    for sequence in range(1, 6):
        rows: list[RawRow] = []
        for _ in range(dice.choice([1, 12, 40])):
            key = dice.randrange(8)
            value = None if dice.random() < 0.25 else order(key, dice.choice([None, 1, 2, 3]))
            rows.append((str(key).encode(), value, key % 2, offsets[key % 2]))
            offsets[key % 2] += 1
        entry = bench.entry(sequence, rows, position)
        position = entry.position

        upsert.write(decoder(a_pipeline())(bench.raw(rows)), entry)

        assert classify(entry, log.commits()) is Outcome.COMMITTED
        state = folded(state, rows)
        assert table_of(bench) == state, f"seed {seed}, batch {sequence}: {rows}"


def test_a_row_of_another_partition_is_deleted_by_a_later_tombstone(bench: Bench) -> None:
    upsert, _ = writer(bench, a_pipeline())
    rows: list[RawRow] = [(b"1", order(1, 5), 0, 0)]
    first = bench.entry(1, rows, Position())
    upsert.write(decoder(a_pipeline())(bench.raw(rows)), first)
    later: list[RawRow] = [(b"1", None, 1, 0)]

    upsert.write(decoder(a_pipeline())(bench.raw(later)), bench.entry(2, later, first.position))

    assert table_of(bench) == {}


def test_a_stale_sequence_is_skipped_in_silence_and_told_by_reading_back(bench: Bench) -> None:
    upsert, log = writer(bench, a_pipeline())
    ours: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    theirs: list[RawRow] = [(b"2", order(2, 1), 0, 0), (b"3", order(3, 1), 0, 1)]
    won = bench.entry(1, theirs, Position())
    upsert.write(decoder(a_pipeline())(bench.raw(theirs)), won)
    lost = bench.entry(1, ours, Position())

    upsert.write(decoder(a_pipeline())(bench.raw(ours)), lost)

    assert classify(lost, log.commits()) is Outcome.SUPERSEDED
    assert set(table_of(bench)) == {2, 3}


def test_the_session_keeps_no_conf_of_a_merge_not_even_of_a_failed_one(bench: Bench) -> None:
    upsert, _ = writer(bench, a_pipeline())
    rows: list[RawRow] = [(b"1", order(1, 1), 0, 0)]
    upsert.write(decoder(a_pipeline())(bench.raw(rows)), bench.entry(1, rows, Position()))
    broken = Upsert(
        Target(str(bench.folder / "none"), ("order_id",), ("order_id",)), upsert.quarantine, True
    )

    with pytest.raises(Exception, match="none"):
        broken.write(decoder(a_pipeline())(bench.raw(rows)), bench.entry(2, rows, Position()))

    for conf in (TXN_APP_ID, TXN_VERSION, USER_METADATA, MATERIALIZE_SOURCE):
        assert bench.spark.conf.get(conf, None) is None
