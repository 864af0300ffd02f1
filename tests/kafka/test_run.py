"""A run against a real broker, Spark and Delta: what advances the ledger, and what halts it."""

from __future__ import annotations

import json
import shutil
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as NativeTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.facts import idle_starts
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.operate.status import status
from rivermouth.protocol.starts import OVER
from rivermouth.testing import Record, create_topic
from tests.lake import Heard, Lake, append_pipeline, bid, continuous, order, upsert_pipeline
from tests.processes import said_by
from tests.waiting import wait_for, wait_for_markers

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def offsets_of(lake: Lake, table: str) -> list[tuple[int, int]]:
    """(partition, offset) of every row."""
    kafka = [row["_kafka"] for row in lake.rows(table)]
    return sorted((each["partition"], each["offset"]) for each in kafka)


def code_of(heard: Heard) -> str:
    """The code of the error the only pipeline ended with."""
    [report] = heard.ends
    assert report.error is not None, "the pipeline was expected to stop"
    return report.error.code


def admin_of(lake: Lake) -> AdminClient:
    return AdminClient({"bootstrap.servers": lake.servers})


def test_append_resumes_from_the_table_and_writes_every_record_once(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("resumes", 2)
    lake.configure(p=append_pipeline("resumes", max_offsets_per_trigger=40))
    lake.produce("resumes", [(None, bid(i), i % 2) for i in range(100)])
    first = lake.run(rivermouth_spark, "p")
    assert first.ends[0].error is None, str(first.ends[0].error)
    assert first.ends[0].commits == 3
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

    assert (heard.ends[0].applied, heard.ends[0].quarantined) == (2, 6)
    assert offsets_of(lake, "bronze.bad") == [(0, 0), (0, 6)]
    held = sorted(lake.rows("bronze.bad_quarantine"), key=lambda row: int(row["offset"]))
    assert [(row["offset"], row["code"], row["key"], row["value"]) for row in held] == [
        (1, "RM603", b"k1", b"{oops"),
        (2, "RM601", b"k2", None),
        (3, "RM602", b"k3", b""),
        (4, "RM603", b"k4", b'{"auction": "x"}'),
        (5, "RM603", b"k5", b"[1]"),
        (7, "RM603", b"k7", b"null"),
    ]
    [standing] = {row["commit"] for row in held}
    assert standing in {row["commit"] for row in lake.rows("rivermouth.offsets")}


def test_a_batch_without_a_single_good_record_still_advances_the_ledger(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    for make, name in ((append_pipeline, "poison-a"), (upsert_pipeline, "poison-u")):
        lake.topic(name)
        lake.configure(p=make(name))
        lake.produce(name, [(b"1", b"poison", 0)] * 3)
        heard = lake.run(rivermouth_spark, "p")
        assert heard.ends[0].error is None
        assert (heard.ends[0].sequence, heard.ends[0].quarantined) == (2, 3)
        shutil.rmtree(lake.warehouse)


def test_aborted_transactions_advance_the_ledger_and_leave_no_row(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("aborted")
    lake.configure(p=append_pipeline("aborted"))
    options = {"bootstrap.servers": lake.servers, "transactional.id": "aborts"}
    producer = Producer(options)
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(5):
        producer.produce("aborted", bid(number), partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    wait_for_markers(options)

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].error is None
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
        [(b"1", order(1, "older", 49), 0), (b"2", None, 0), (b"9", None, 0)],
        [(b"2", order(2, "again", 0), 0), (b"3", order(3, "x", 5), 0), (b"3", None, 0)],
        [(b"1", None, 0), (b"1", order(1, "reborn", 2), 0)],
    ]
    for batch in batches:
        lake.produce("newest", batch)
        assert lake.run(rivermouth_spark, "p").ends[0].error is None

    rows = {row["order_id"]: row["status"] for row in lake.rows("silver.newest")}
    assert rows == {1: "reborn", 2: "again"}


@pytest.mark.thorough
def test_a_merge_that_changes_no_row_advances_the_ledger(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("nothing")
    lake.configure(p=upsert_pipeline("nothing"))
    lake.produce("nothing", [(b"1", order(1, "stays", 50), 0)])
    lake.run(rivermouth_spark, "p")
    lake.produce("nothing", [(b"1", order(1, "older", 10), 0), (b"7", None, 0)])

    heard = lake.run(rivermouth_spark, "p")

    assert (heard.ends[0].error, heard.ends[0].sequence) == (None, 3)
    assert heard.commits[-1].position.as_nested() == {"nothing": {"0": 3}}
    assert [row["status"] for row in lake.rows("silver.nothing")] == ["stays"]


def test_latest_is_decided_once_and_skips_nothing_between_runs(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("latest")
    lake.configure(p=append_pipeline("latest", start="latest"))
    lake.produce("latest", [(None, bid(1), 0)])
    lake.run(rivermouth_spark, "p")
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
    heard = lake.run(rivermouth_spark, "p")
    assert code_of(heard) == "RM417"
    assert f"timed-1 has no record from {start} on" in str(heard.ends[0].error)
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


@pytest.mark.thorough
def test_leftover_checkpoints_have_no_effect_and_are_tidied(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("leftovers")
    lake.configure(p=append_pipeline("leftovers"))
    lake.produce("leftovers", [(None, bid(1), 0)])
    checkpoints = lake.scratch / "checkpoints"
    earlier, foreign, corrupt = f"p-{1:032x}", f"other-{2:032x}", f"p-{3:032x}"
    for name in (earlier, foreign, corrupt):
        (checkpoints / name / "offsets").mkdir(parents=True)
        (checkpoints / name / "offsets" / "0").write_text('v1\n{}\n{"leftovers":{"0":1}}')
    (checkpoints / corrupt / "offsets" / "1").write_bytes(b"\0\0")
    (checkpoints / f"{earlier}.lock").touch()

    heard = lake.run(rivermouth_spark, "p")

    assert heard.ends[0].applied == 1
    assert not list(checkpoints.iterdir())


def test_a_partition_added_in_mid_run_is_read_from_its_first_record(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("grows")
    lake.configure(p=append_pipeline("grows", **{"kafka.metadata.max.age.ms": "500"}))
    lake.produce("grows", [(None, bid(1), 0)])
    with continuous(lake, rivermouth_spark, "p") as heard:
        wait_for(lambda: sum(each.applied for each in heard.commits) == 1)
        admin = admin_of(lake)
        admin.create_partitions([NewPartitions("grows", 2)])["grows"].result(30)
        time.sleep(1)
        lake.produce("grows", [(None, bid(2), 1), (None, bid(3), 0)])
        wait_for(lambda: sum(each.applied for each in heard.commits) == 3)

    assert heard.ends[0].error is None
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
    offsets = lake.path("rivermouth.offsets")
    kept = lake.rows("rivermouth.offsets")
    shutil.rmtree(offsets)

    assert rebuild_offsets(config) == {"a": kept_entries(kept, "a"), "u": kept_entries(kept, "u")}

    assert as_set(lake.rows("rivermouth.offsets")) == as_set(kept)
    assert rebuild_offsets(config)
    assert as_set(lake.rows("rivermouth.offsets")) == as_set(kept), "a second time as well"
    assert lake.run(rivermouth_spark, "a", "u").ends[0].error is None
    assert as_set(lake.rows("rivermouth.offsets")) == as_set(kept), "nothing new was projected"


def kept_entries(rows: list[dict[str, object]], pipeline: str) -> int:
    return len({row["sequence"] for row in rows if row["pipeline"] == pipeline})


def as_set(rows: list[dict[str, object]]) -> set[str]:
    return {json.dumps(row, default=str, sort_keys=True) for row in rows}


@pytest.mark.thorough
def test_an_offsets_table_deleted_while_stopped_is_repaired_by_the_next_run(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("repaired")
    lake.configure(p=append_pipeline("repaired"))
    lake.produce("repaired", [(None, bid(1), 0)])
    lake.run(rivermouth_spark, "p")
    kept = lake.rows("rivermouth.offsets")
    shutil.rmtree(lake.path("rivermouth.offsets"))

    heard = lake.run(rivermouth_spark, "p")

    assert heard.opens[0].projected == 2
    assert as_set(lake.rows("rivermouth.offsets")) == as_set(kept)


def test_a_recreated_topic_halts_even_when_it_has_grown_past_our_offset(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("recreated")
    lake.configure(p=append_pipeline("recreated"))
    lake.produce("recreated", [(None, bid(1), 0)] * 3)
    lake.run(rivermouth_spark, "p")
    lake.delete_topic("recreated")
    lake.topic("recreated")
    lake.produce("recreated", [(None, bid(2), 0)] * 9)

    heard = lake.run(rivermouth_spark, "p")

    assert code_of(heard) == "RM404"
    assert len(lake.rows("bronze.recreated")) == 3


def test_records_deleted_before_they_were_read_halt_with_the_exact_gap(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("expired", 2)
    lake.configure(p=append_pipeline("expired"))
    lake.produce("expired", [(None, bid(1), 0), (None, bid(1), 1)])
    lake.run(rivermouth_spark, "p")
    lake.produce("expired", [(None, bid(2), 1)] * 5)
    cut = NativeTopicPartition("expired", 1, 4)
    admin = admin_of(lake)
    [deleted] = admin.delete_records([cut]).values()
    deleted.result(30)

    heard = lake.run(rivermouth_spark, "p")

    assert code_of(heard) == "RM406"
    assert "p expired-1" in str(heard.ends[0].error)
    assert "[1,4)" in str(heard.ends[0].error)
    assert len(lake.rows("bronze.expired")) == 2


@pytest.mark.thorough
def test_another_cluster_behind_the_address_halts(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("elsewhere")
    lake.configure(p=append_pipeline("elsewhere"))
    lake.run(rivermouth_spark, "p")
    with Broker() as other:
        create_topic(other.bootstrap_servers, "elsewhere")
        moved = Lake(lake.folder, other.bootstrap_servers)
        moved.configure(p=append_pipeline("elsewhere"))

        heard = moved.run(rivermouth_spark, "p")

    assert code_of(heard) == "RM405"


@pytest.mark.parametrize(("setting", "value"), [("keys", ["order_id", "status"]), ("order_by", [])])
def test_a_changed_identity_halts_and_names_the_setting(
    lake: Lake, rivermouth_spark: SparkSession, setting: str, value: list[str]
) -> None:
    topic = f"identity-{setting.replace('_', '-')}"
    lake.topic(topic)
    pipeline = upsert_pipeline(topic)
    pipeline["source"]["key"] = "json"
    lake.configure(p=pipeline)
    lake.run(rivermouth_spark, "p")
    pipeline["target"][setting] = value
    lake.configure(p=pipeline)

    heard = lake.run(rivermouth_spark, "p")

    assert code_of(heard) == "RM408"
    assert setting in str(heard.ends[0].error)


def test_a_changed_target_and_a_dropped_table_halt(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("moved")
    pipeline = append_pipeline("moved")
    lake.configure(p=pipeline)
    lake.produce("moved", [(None, bid(1), 0)])
    lake.run(rivermouth_spark, "p")
    pipeline["target"]["table"] = "bronze.elsewhere"
    lake.configure(p=pipeline)
    assert code_of(lake.run(rivermouth_spark, "p")) == "RM415"

    pipeline["target"]["table"] = "bronze.moved"
    lake.configure(p=pipeline)
    shutil.rmtree(lake.path("bronze.moved"))

    assert code_of(lake.run(rivermouth_spark, "p")) == "RM415"


@pytest.mark.thorough
def test_a_restored_table_halts_until_the_restore_is_undone(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("restored")
    lake.configure(p=append_pipeline("restored", max_offsets_per_trigger=2))
    lake.produce("restored", [(None, bid(i), 0) for i in range(4)])
    lake.run(rivermouth_spark, "p")
    table = DeltaTable(str(lake.path("bronze.restored")))
    newest = table.version()
    table.restore(newest - 1)
    assert code_of(lake.run(rivermouth_spark, "p")) == "RM411"

    DeltaTable(str(lake.path("bronze.restored"))).restore(newest)
    lake.produce("restored", [(None, bid(9), 0)])

    assert lake.run(rivermouth_spark, "p").ends[0].error is None
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
        wait_for(lambda: (lake.path("rivermouth.offsets")).exists() and _projected(lake) == 2)
        first.terminate()
        said = said_by(first)

    assert code_of(second) == "RM413"
    assert second.ends[0].error is not None
    assert second.ends[0].error.exit_code == 3
    assert first.returncode == 0, said
    assert offsets_of(lake, "bronze.twice") == [(0, 0)]


def _projected(lake: Lake) -> int:
    return max(int(row["sequence"]) for row in lake.rows("rivermouth.offsets"))


def test_one_failing_pipeline_does_not_stop_the_others(
    lake: Lake, rivermouth_spark: SparkSession, tmp_path: Path
) -> None:
    lake.topic("good")
    lake.configure(good=append_pipeline("good"), lost=append_pipeline("no-such-topic"))
    lake.produce("good", [(None, bid(1), 0)])

    heard = lake.run(rivermouth_spark, "lost", "good")

    errors = {each.pipeline: each.error for each in heard.ends}
    assert errors["good"] is None
    assert errors["lost"] is not None
    assert errors["lost"].code == "RM302"
    assert load(lake.file).path == tmp_path / "rivermouth.yml"


@pytest.mark.thorough
def test_each_pipeline_of_a_run_has_a_scheduling_pool_of_its_own(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    for name in ("pool-a", "pool-b"):
        lake.topic(name)
        lake.produce(name, [(None, bid(1), 0)])
    lake.configure(a=append_pipeline("pool-a"), b=append_pipeline("pool-b"))
    assert [each.error for each in lake.run(rivermouth_spark, "a", "b").ends] == [None, None]
    context = rivermouth_spark.sparkContext
    assert context.getConf().get("spark.scheduler.mode") == "FAIR"
    pools = context._jsc.sc().getAllPools()
    assert {"a", "b"} <= {pools.apply(n).name() for n in range(pools.size())}
