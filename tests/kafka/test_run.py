"""A run against a real broker, Spark and Delta: what advances the ledger, and what halts it."""

from __future__ import annotations

import json
import shutil
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.facts import idle_starts
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.operate.status import status
from rivermouth.protocol.starts import OVER
from rivermouth.testing import Record, create_topic
from rivermouth.verification import verify
from tests.faults.outcomes import applied, refusal, went_well
from tests.kafka.topics import add_partitions, delete_before, in_transaction
from tests.lake import Lake, append_pipeline, bid, continuous, order, upsert_pipeline
from tests.processes import said_by
from tests.waiting import wait_for, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def offsets_of(lake: Lake, table: str) -> list[tuple[int, int]]:
    """(partition, offset) of every row."""
    kafka = [row["_kafka"] for row in lake.rows(table)]
    return sorted((each["partition"], each["offset"]) for each in kafka)


def read_once(lake: Lake, spark: SparkSession, pipeline: dict[str, Any], *records: Record) -> None:
    """A new topic with these records, all of which the pipeline has read."""
    [topic] = pipeline["source"]["topics"]
    lake.topic(topic, 1 + max((partition for *_, partition in records), default=0))
    lake.configure(p=pipeline)
    lake.produce(topic, records)
    went_well(lake.run(spark, "p"))


def test_append_resumes_from_the_table_and_writes_every_record_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("resumes", 2)
    lake.configure(p=append_pipeline("resumes", max_offsets_per_trigger=40))
    lake.produce("resumes", [(None, bid(i), i % 2) for i in range(100)])
    assert went_well(lake.run(rivermouth_spark, "p")).ends[0].commits == 3
    lake.produce("resumes", [(None, bid(i), i % 2) for i in range(10)])

    second = lake.run(rivermouth_spark, "p")

    assert second.ends[0].applied == 10
    assert offsets_of(lake, "bronze.resumes") == [(p, o) for p in range(2) for o in range(55)]
    assert not list((lake.scratch / "checkpoints").iterdir())


def test_bad_records_go_to_quarantine_raw_and_the_rest_to_the_table(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("bad")
    lake.configure(p=append_pipeline("bad"))
    values = [bid(1), b"{oops", None, b"", b'{"auction": "x"}', b"[1]", bid(2), b"null"]
    lake.produce("bad", [(b"k%d" % i, value, 0) for i, value in enumerate(values)])

    heard = lake.run(rivermouth_spark, "p")

    ended = heard.ends[0]
    assert (ended.applied, ended.quarantined, ended.skipped) == (2, 5, 1)
    assert offsets_of(lake, "bronze.bad") == [(0, 0), (0, 6)]
    bad = sorted(lake.rows("bronze.bad_quarantine"), key=lambda row: int(row["offset"]))
    assert [(row["offset"], row["code"], row["key"], row["value"]) for row in bad] == [
        (1, "RM603", b"k1", b"{oops"),
        (3, "RM602", b"k3", b""),
        (4, "RM603", b"k4", b'{"auction": "x"}'),
        (5, "RM603", b"k5", b"[1]"),
        (7, "RM603", b"k7", b"null"),
    ]
    [commit] = {row["commit"] for row in bad}
    assert commit in {row["commit"] for row in lake.rows("rivermouth.offsets")}


def test_a_batch_without_a_single_good_record_still_advances_the_ledger(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    for make, name in ((append_pipeline, "poison-a"), (upsert_pipeline, "poison-u")):
        lake.topic(name)
        lake.configure(p=make(name))
        lake.produce(name, [(b"1", b"poison", 0)] * 3)
        heard = went_well(lake.run(rivermouth_spark, "p"))
        assert (heard.ends[0].sequence, heard.ends[0].quarantined) == (2, 3)
        shutil.rmtree(lake.warehouse)


def test_aborted_transactions_advance_the_ledger_and_leave_no_row(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("aborted")
    lake.configure(p=append_pipeline("aborted"))
    in_transaction(lake.servers, "aborted", *map(bid, range(5)), commit=False)

    heard = went_well(lake.run(rivermouth_spark, "p"))

    assert heard.commits[-1].ranges[0].until_offset == 6, "five records and the marker"
    assert lake.rows("bronze.aborted") == []


def test_an_upsert_keeps_the_newest_row_per_key_whatever_arrives_when(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("newest")
    lake.configure(p=upsert_pipeline("newest"))
    batches: list[list[Record]] = [
        [
            (b"1", order(1, "new", 50), 0),
            (b"1", order(1, "late", 40), 0),
            (b"2", order(2, "a", 1), 0),
        ],
        [(b"1", order(1, "changes nothing", 10), 0), (b"7", None, 0)],
        [(b"1", order(1, "older", 49), 0), (b"2", None, 0), (b"9", None, 0)],
        [(b"2", order(2, "again", 0), 0), (b"3", order(3, "x", 5), 0), (b"3", None, 0)],
        [(b"1", None, 0), (b"1", order(1, "reborn", 2), 0)],
    ]
    for number, batch in enumerate(batches, 2):
        lake.produce("newest", batch)
        heard = went_well(lake.run(rivermouth_spark, "p"))
        assert heard.ends[0].sequence == number, "each batch is an entry"

    rows = {row["order_id"]: row["status"] for row in lake.rows("silver.newest")}
    assert rows == {1: "reborn", 2: "again"}


@pytest.mark.thorough
def test_a_tombstone_whose_key_is_no_text_deletes_no_row(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    shown = "\ufffd"  # in place of bytes that are no UTF-8; it is a text of its own, too
    lake.topic("no-text")
    target = {"table": "silver.no_text", "mode": "upsert", "keys": ["id"]}
    source = {"topics": ["no-text"], "format": "json", "key": "string"}
    lake.configure(p={"source": source, "schema": "id STRING, n BIGINT", "target": target})
    rows = [(None, json.dumps({"id": each, "n": 1}).encode(), 0) for each in (shown, "a")]
    lake.produce("no-text", [*rows, (b"\xff", None, 0), (b"\xfe\xff", None, 0), (b"a", None, 0)])

    went_well(lake.run(rivermouth_spark, "p"))

    assert [each["id"] for each in lake.rows("silver.no_text")] == [shown]
    [proof] = verify(load(lake.file)).pipelines
    assert (proof.problems, proof.complete, proof.quarantined) == ((), True, 0)


def test_latest_is_decided_once_and_skips_nothing_between_runs(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    latest = append_pipeline("latest", start="latest")
    read_once(lake, rivermouth_spark, latest, (None, bid(1), 0))
    lake.produce("latest", [(None, bid(2), 0)])

    lake.run(rivermouth_spark, "p")

    assert offsets_of(lake, "bronze.latest") == [(0, 1)]


def test_a_run_may_start_at_a_time(lake: Lake, rivermouth_spark: SparkSession) -> None:
    """Each partition from its first record of that time or later, whatever came after it."""
    lake.topic("timed", 2)
    producer = Producer({"bootstrap.servers": lake.servers})
    minutes = {0: [0, 10, 5, 20], 1: [0, 1]}
    began = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(hours=1)
    for partition, times in minutes.items():
        for each in times:
            ms = int((began.timestamp() + 60 * each) * 1000)
            producer.produce("timed", bid(each), partition=partition, timestamp=ms)
    assert producer.flush(60) == 0
    start = (began + timedelta(minutes=5)).isoformat().replace("+00:00", "Z")

    lake.configure(p=append_pipeline("timed", start=start))
    halted = refusal(lake.run(rivermouth_spark, "p"))
    assert halted.code == "RM417"
    assert f"timed-1 has no record from {start} on" in str(halted)
    assert not lake.rows("bronze.timed")

    config = lake.configure(p=append_pipeline("timed", start=start, on_missing_time="latest"))
    assert idle_starts(config) == []
    heard = lake.run(rivermouth_spark, "p")
    assert OVER not in heard.opens[0].line()
    assert offsets_of(lake, "bronze.timed") == [(0, 1), (0, 2), (0, 3)]

    lake.produce("timed", [(None, bid(7), 1)])
    heard = lake.run(rivermouth_spark, "p")
    assert offsets_of(lake, "bronze.timed")[3:] == [(1, 2)]
    assert OVER in heard.opens[0].line()
    assert idle_starts(config) == ["p"]
    assert status(config).pipelines[0].reason == OVER


def test_a_partition_added_in_mid_run_is_read_from_its_first_record(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("grows")
    lake.configure(p=append_pipeline("grows", **{"kafka.metadata.max.age.ms": "500"}))
    lake.produce("grows", [(None, bid(1), 0)])
    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: applied(heard) == 1)
        add_partitions(lake.servers, "grows", 2)
        time.sleep(1)
        lake.produce("grows", [(None, bid(2), 1), (None, bid(3), 0)])
        wait_for(lambda: applied(heard) == 3)

    went_well(heard)
    assert offsets_of(lake, "bronze.grows") == [(0, 0), (0, 1), (1, 0)]
    assert heard.commits[-1].position.as_nested() == {"grows": {"0": 2, "1": 1}}


@pytest.mark.thorough
def test_the_offsets_table_deleted_comes_back_equal(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("rebuilt-a", 2)
    lake.topic("rebuilt-u", 2)
    config = lake.configure(
        a=append_pipeline("rebuilt-a", max_offsets_per_trigger=10),
        u=upsert_pipeline("rebuilt-u", max_offsets_per_trigger=10),
    )
    for topic in ("rebuilt-a", "rebuilt-u"):
        good = [
            (b"1", bid(1) if topic.endswith("a") else order(1, "x", i), i % 2) for i in range(30)
        ]
        lake.produce(topic, [*good, (b"1", b"bad", 0)])
    lake.run(rivermouth_spark, "a", "u")
    before = lake.rows("rivermouth.offsets")
    entries = {
        name: len({row["sequence"] for row in before if row["pipeline"] == name}) for name in "au"
    }

    shutil.rmtree(lake.path("rivermouth.offsets"))
    for _ in range(2):
        assert rebuild_offsets(config) == entries
        assert as_set(lake.rows("rivermouth.offsets")) == as_set(before)

    shutil.rmtree(lake.path("rivermouth.offsets"))
    heard = went_well(lake.run(rivermouth_spark, "a", "u"))
    assert {each.pipeline: each.projected for each in heard.opens} == entries
    assert as_set(lake.rows("rivermouth.offsets")) == as_set(before), "a run does the same"


def as_set(rows: list[dict[str, object]]) -> set[str]:
    return {json.dumps(row, default=str, sort_keys=True) for row in rows}


def test_a_recreated_topic_halts_even_when_it_has_grown_past_our_offset(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    read_once(lake, rivermouth_spark, append_pipeline("recreated"), *[(None, bid(1), 0)] * 3)
    lake.delete_topic("recreated")
    lake.topic("recreated")
    lake.produce("recreated", [(None, bid(2), 0)] * 9)

    assert refusal(lake.run(rivermouth_spark, "p")).code == "RM404"
    assert len(lake.rows("bronze.recreated")) == 3


def test_records_deleted_before_they_were_read_halt_with_the_exact_gap(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    first: list[Record] = [(None, bid(1), 0), (None, bid(1), 1)]
    read_once(lake, rivermouth_spark, append_pipeline("expired"), *first)
    lake.produce("expired", [(None, bid(2), 1)] * 5)
    delete_before(lake.servers, "expired", 1, 4)

    halted = refusal(lake.run(rivermouth_spark, "p"))

    assert halted.code == "RM406"
    assert "p expired-1" in str(halted)
    assert "[1,4)" in str(halted)
    assert len(lake.rows("bronze.expired")) == 2


@pytest.mark.thorough
def test_another_cluster_behind_the_address_halts(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    read_once(lake, rivermouth_spark, append_pipeline("elsewhere"))
    with Broker() as other:
        create_topic(other.bootstrap_servers, "elsewhere")
        moved = Lake(lake.folder, other.bootstrap_servers)
        moved.configure(p=append_pipeline("elsewhere"))

        assert refusal(moved.run(rivermouth_spark, "p")).code == "RM405"


@pytest.mark.parametrize(("setting", "value"), [("keys", ["order_id", "status"]), ("order_by", [])])
def test_a_changed_identity_halts_and_names_the_setting(
    lake: Lake, rivermouth_spark: SparkSession, setting: str, value: list[str]
) -> None:
    topic = f"identity-{setting.replace('_', '-')}"
    pipeline = upsert_pipeline(topic, key="json")
    read_once(lake, rivermouth_spark, pipeline)
    pipeline["target"][setting] = value
    lake.configure(p=pipeline)

    halted = refusal(lake.run(rivermouth_spark, "p"))

    assert halted.code == "RM408"
    assert setting in str(halted)


@pytest.mark.thorough
def test_a_restored_table_halts_until_the_restore_is_undone(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    pipeline = append_pipeline("restored", max_offsets_per_trigger=2)
    read_once(lake, rivermouth_spark, pipeline, *[(None, bid(i), 0) for i in range(4)])
    table = DeltaTable(lake.path("bronze.restored"))
    newest = table.version()
    table.restore(newest - 1)
    assert refusal(lake.run(rivermouth_spark, "p")).code == "RM411"

    DeltaTable(lake.path("bronze.restored")).restore(newest)
    lake.produce("restored", [(None, bid(9), 0)])

    went_well(lake.run(rivermouth_spark, "p"))
    assert offsets_of(lake, "bronze.restored") == [(0, offset) for offset in range(5)]


@pytest.mark.thorough
def test_of_two_drivers_one_progresses_and_the_other_exits_with_3(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("twice")
    lake.configure(p=append_pipeline("twice"))
    with lake.driver("p", continuous=True) as first:
        wait_for(lambda: "opened" in (first.stdout.readline() if first.stdout else ""))
        second = lake.run(rivermouth_spark, "p")
        lake.produce("twice", [(None, bid(1), 0)])
        wait_for_rows(lake.path("rivermouth.offsets"), 2)
        first.terminate()
        said = said_by(first)

    halted = refusal(second)
    assert (halted.code, halted.exit_code) == ("RM413", 3)
    assert first.returncode == 0, said
    assert offsets_of(lake, "bronze.twice") == [(0, 0)]


@pytest.mark.thorough
def test_each_pipeline_of_a_run_has_a_scheduling_pool_of_its_own(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    for name in ("pool-a", "pool-b"):
        lake.topic(name)
        lake.produce(name, [(None, bid(1), 0)])
    lake.configure(a=append_pipeline("pool-a"), b=append_pipeline("pool-b"))
    went_well(lake.run(rivermouth_spark, "a", "b"))
    context = rivermouth_spark.sparkContext
    assert context.getConf().get("spark.scheduler.mode") == "FAIR"
    pools = context._jsc.sc().getAllPools()
    assert {"a", "b"} <= {pools.apply(n).name() for n in range(pools.size())}
