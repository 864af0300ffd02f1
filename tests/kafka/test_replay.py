"""``rivermouth replay`` in place on real parts: rows are put right, and the proof still holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.errors import ReplayRefused
from rivermouth.run.run import Run
from rivermouth.testing import Record
from tests.faults.outcomes import went_well
from tests.kafka.replaying import by_key, problems, replay, sql
from tests.kafka.topics import delete_before
from tests.lake import Lake, bid, insert_pipeline, order, upsert_pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

Batches = list[list[Record]]
ORDERS: Batches = [
    [(b"1", order(1, "a", 50), 1), (b"2", order(2, "a", 1), 0), (b"3", order(3, "a", 1), 0)],
    [(b"1", order(1, "b", 51), 0), (b"3", None, 0), (b"4", order(4, "b", 9), 1)],
    [(b"2", None, 0), (b"3", order(3, "c", 2), 0), (b"5", b"{oops", 1)],
]
"""Key 1 moves between the partitions, 2 is deleted, 3 comes back."""
BIDS: Batches = [
    [(None, bid(1, 10), 1), (None, bid(2, 11), 0), (None, bid(2, 12), 0), (None, bid(2, 13), 1)],
    [(None, bid(1, 20), 0), (None, bid(3, 21), 1), (None, b"{oops", 1), (None, bid(4, 22), 1)],
    [(None, bid(3, 30), 0), (None, bid(5, 31), 0), (None, bid(4, 32), 0)],
]
"""Each price is there once. By place alone the repeats of 1, 3 and 4 would be the first records."""


def by_ledger(topic: str) -> dict[str, Any]:
    """An upsert pipeline without ``order_by``: the order of the ledger decides."""
    pipeline = upsert_pipeline(topic)
    del pipeline["target"]["order_by"]
    return pipeline


@dataclass(frozen=True)
class Spoilt:
    """A pipeline, its batches, and what others do to its rows before the last one and after it."""

    make: Callable[[str], dict[str, Any]]
    batches: Batches
    columns: tuple[str, str]
    """The key, and the column that tells its rows apart."""
    right: Mapping[int, object]
    before_last: str
    deleted_or_added: str
    changed: tuple[str, str]
    """A statement, and the column that it spoils."""
    problems: int
    changes: tuple[int, int, int]
    """Rows that a replay inserts, updates and deletes."""
    ranges: tuple[str, str]
    later: Record


UPSERT = Spoilt(
    upsert_pipeline,
    ORDERS,
    ("order_id", "status"),
    {1: "b", 3: "c", 4: "b"},
    "",
    "DELETE FROM TABLE WHERE order_id = 1; INSERT INTO TABLE"
    " SELECT 2, 'back', 1, updated_at, _kafka FROM TABLE WHERE order_id = 4",
    ("UPDATE TABLE SET status = 'wrong' WHERE order_id = 3", "status"),
    3,
    (1, 1, 1),
    ("0[0,6): 6 records", "1[0,3): 3 records, 1 of them bad"),
    (b"6", order(6, "d", 3), 0),
)
SPOILT = {
    "upsert": UPSERT,
    "by-ledger": replace(UPSERT, make=by_ledger),
    # A repeat of 4 has become a first row.
    "insert": Spoilt(
        insert_pipeline,
        BIDS,
        ("auction", "price"),
        {1: 10, 2: 11, 3: 21, 4: 22, 5: 31},
        "DELETE FROM TABLE WHERE auction = 4",
        "DELETE FROM TABLE WHERE auction IN (1, 2)",
        ("UPDATE TABLE SET bidder = 0 WHERE auction = 3", "bidder"),
        4,
        (2, 2, 0),
        ("0[0,6): 6 records", "1[0,5): 5 records, 1 of them bad"),
        (None, bid(6, 41), 0),
    ),
}


def filled(
    lake: Lake,
    spark: SparkSession,
    topic: str,
    make: Callable[[str], dict[str, Any]],
    batches: Batches,
    before_last: str = "",
) -> str:
    """A table after these batches, before the last of which somebody changes it; its name."""
    lake.topic(topic, 2)
    table = str(lake.configure(p=make(topic)).pipelines["p"].target.table)
    for number, records in enumerate(batches, 1):
        if before_last and number == len(batches):
            sql(spark, lake.path(table), before_last)
        lake.produce(topic, records)
        went_well(lake.run(spark, "p"))
    return table


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        ("upsert", "earliest"),
        ("by-ledger", "earliest"),
        ("insert", "earliest"),
        ("insert", "replay-insert-offset:0:4"),
    ],
)
def test_rows_that_others_changed_are_put_right_and_all_is_proved(
    lake: Lake, rivermouth_spark: SparkSession, kind: str, begin: str
) -> None:
    """Of first rows from all that was ever read, wherever somebody begins."""
    it, topic = SPOILT[kind], f"replay-{kind}" if begin == "earliest" else "replay-insert-offset"
    table = filled(lake, rivermouth_spark, topic, it.make, it.batches, it.before_last)
    path = lake.path(table)
    for statement in (*it.deleted_or_added.split("; "), it.changed[0]):
        sql(rivermouth_spark, path, statement)
    assert len(problems(lake)) == it.problems
    version = DeltaTable(path).version()

    shown = replay(lake, rivermouth_spark, begin, dry_run=True)

    plan = shown.plan
    assert not shown.written
    assert (plan.since, plan.inserted, plan.updated, plan.deleted) == (2, *it.changes)
    assert [str(each) for each in plan.ranges] == [f"{topic}-{each}" for each in it.ranges]
    assert DeltaTable(path).version() == version
    done = replay(lake, rivermouth_spark, begin)
    assert (done.plan, done.written) == (plan, True)
    assert written(lake, table) == it.changes, "a right row is not written"
    assert by_key(lake, table, *it.columns) == it.right
    assert problems(lake) == []
    lake.produce(topic, [it.later])
    went_well(lake.run(rivermouth_spark, "p", audit=True))
    assert problems(lake) == []
    again = replay(lake, rivermouth_spark, begin)
    assert (again.written, again.plan.rows) == (False, 0)
    assert by_key(lake, table, *it.columns).items() > it.right.items()

    sql(rivermouth_spark, path, it.changed[0])
    [line] = problems(lake)
    assert it.changed[1] in line, "a replay hides nothing that is changed after it"


def written(lake: Lake, table: str) -> tuple[int, ...]:
    """The rows that the newest commit has inserted, updated and deleted, as Spark counted them."""
    [newest] = DeltaTable(lake.path(table)).history(1)
    metrics: dict[str, Any] = newest["operationMetrics"]
    names = ("Inserted", "Updated", "Deleted")
    return tuple(int(metrics[f"numTargetRows{each}"]) for each in names)


@pytest.mark.thorough
def test_in_place_only_what_leaves_the_rows_of_the_first_reading(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    topic = "replay-refused"
    path = lake.path(filled(lake, rivermouth_spark, topic, upsert_pipeline, ORDERS))

    def refused(begin: str, end: str = "") -> str:
        with pytest.raises(ReplayRefused) as found:
            replay(lake, rivermouth_spark, begin, end)
        return str(found.value)

    # Its newest record is in the second batch, and the first one holds one of the same time.
    sql(rivermouth_spark, path, "DELETE FROM TABLE WHERE order_id = 4")
    version = DeltaTable(str(path)).version()
    assert "an earlier record may be newer by order_by" in refused("replay-refused:1:1")
    assert "Leave out --to" in refused("earliest", "replay-refused:0:5")
    assert "read up to 6" in refused("replay-refused:0:7")
    Run(load(lake.file), rivermouth_spark, lake.scratch, continuous=False).accept_deletes(
        "p", [version], lambda _: None
    )
    assert "whose DELETE was accepted" in refused("replay-refused:0:0")
    with pytest.raises(ReplayRefused, match="nothing to replay"):
        replay(lake, rivermouth_spark, "earliest")
    assert problems(lake) == []


@pytest.mark.thorough
def test_first_rows_are_not_guessed_from_a_part(lake: Lake, rivermouth_spark: SparkSession) -> None:
    delete = SPOILT["insert"].before_last
    table = filled(lake, rivermouth_spark, "replay-part", insert_pipeline, BIDS, delete)
    sql(rivermouth_spark, lake.path(table), "DELETE FROM TABLE WHERE auction = 2")
    with pytest.raises(ReplayRefused, match="ends where the pipeline stands"):
        replay(lake, rivermouth_spark, "earliest", "replay-part:0:5")
    before = by_key(lake, table, "auction", "price")
    delete_before(lake.servers, "replay-part", 0, 1)

    for begin in ("earliest", "replay-part:0:4"):
        with pytest.raises(ReplayRefused) as refused:
            replay(lake, rivermouth_spark, begin)
        assert "not all that the pipeline has read" in refused.value.what
        assert "Kafka holds offsets from 1 on" in refused.value.found
        assert "--into" in refused.value.remedy
    assert by_key(lake, table, "auction", "price") == before

    found = replay(lake, rivermouth_spark, "replay-part:0:1,replay-part:1:0", into="repair.firsts")
    assert (found.written, found.plan.inserted) == (True, 5)
    # As one batch: the least place of what Kafka holds.
    assert by_key(lake, "repair.firsts", "auction", "price") == {1: 20, 2: 12, 3: 30, 4: 32, 5: 31}


@pytest.mark.thorough
def test_the_command_shows_asks_and_answers(lake: Lake, rivermouth_spark: SparkSession) -> None:
    filled(lake, rivermouth_spark, "replay-said", by_ledger, ORDERS)
    sql(rivermouth_spark, lake.path("silver.replay_said"), "DELETE FROM TABLE WHERE order_id = 4")

    def said(*words: str, answer: str = "") -> tuple[int, str, str]:
        ended = lake.command("replay", "p", *words, spark=rivermouth_spark, answer=answer)
        return ended.returncode, ended.stdout, ended.stderr

    code, out, err = said("--from", "earliest", "--json", answer="y\n")
    assert code == 0, err
    assert "silver.replay_said: 1 to insert, 0 to update, 0 to delete" in err
    assert "Write this?" in err
    answered = json.loads(out)
    assert (answered["written"], answered["records"], answered["sequence"]) == (True, 9, 5)
    assert answered["rows"] == {"inserted": 1, "updated": 0, "deleted": 0}
    assert problems(lake) == []
