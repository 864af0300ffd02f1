"""Pipelines that send: to a topic, or to a function of the user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import load, unresolved
from rivermouth.errors import LogUnreadable, ProjectionFailed
from rivermouth.operate.doctor import Check, check_config
from rivermouth.storage.store import Store
from rivermouth.verification import verify
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.write import evaluation
from rivermouth.write.evaluation import persisted
from rivermouth.write.landings.driver_commits import Recording
from tests.faults.outcomes import applied, refusal, went_well
from tests.lake import Lake, append_pipeline, bid, retrying

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def sending(source: str, to: str, **target: Any) -> dict[str, Any]:
    return {**append_pipeline(source), "target": {"kafka": to, **target}}


def calling(source: str, function: str, **target: Any) -> dict[str, Any]:
    return {**append_pipeline(source), "target": {"foreach_partition": function, **target}}


def read_back(servers: str, topic: str, partitions: int = 1) -> list[Any]:
    """All records of a topic."""
    reader = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        for each in reader.consume(1000, 1.0):
            if each.error() is None:
                found.append(each)
            else:
                ended += 1
    reader.close()
    return found


def test_records_get_to_the_topic_with_key_value_and_id(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("sent-in", 2)
    lake.topic("sent-out", 2)
    lake.configure(p=sending("sent-in", "sent-out"))
    lake.produce("sent-in", [(b"k%d" % i, bid(i), i % 2) for i in range(10)])
    lake.produce("sent-in", [(None, b"oops", 0)])

    went_well(lake.run(rivermouth_spark, "p"))

    found = {
        dict(each.headers())["rm-id"].decode(): each
        for each in read_back(lake.servers, "sent-out", 2)
    }
    assert {*found} == {f"p/sent-in/{i % 2}/{i // 2}" for i in range(10)}
    one = found["p/sent-in/1/1"]
    assert one.key() == b"k3"
    assert json.loads(one.value()) == {
        "auction": 3,
        "bidder": 7,
        "price": 100,
        "at": "2026-01-02T03:04:05.000000Z",
    }
    assert [row["code"] for row in lake.rows("rivermouth.ledger_p_quarantine")] == ["RM603"]
    assert lake.rows("rivermouth.ledger_p") == []
    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["complete"], proof
    assert (proof["records"], proof["quarantined"], proof["repeated"]) == (11, 1, 0)


def proved(lake: Lake) -> dict[str, Any]:
    """What verify says of the only pipeline."""
    [proof] = verify(load(lake.file), None).as_dict()["pipelines"]
    return dict(proof)


def test_verify_finds_what_is_wrong_in_the_topic(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("wrong-in", 1)
    lake.topic("wrong-out", 1)
    lake.configure(p=sending("wrong-in", "wrong-out"))
    lake.produce("wrong-in", [(None, bid(i), 0) for i in range(5)])
    lake.run(rivermouth_spark, "p")
    before = read_back(lake.servers, "wrong-out")
    producer = Producer({"bootstrap.servers": lake.servers})
    for header, value in (
        (b"p/wrong-in/0/1", before[1].value()),
        (b"p/wrong-in/0/2", bid(9)),
        (b"p/wrong-in/0/99", bid(9)),
        (b"other/wrong-in/0/2", bid(9)),
    ):
        producer.produce("wrong-out", value, headers=[("rm-id", header)])
    producer.flush()

    proof = proved(lake)

    assert not proof["ok"]
    assert (proof["repeated"], proof["different"], proof["missing"]) == (2, 1, 0)
    assert proof["not_checked"] == {"records_sent_ahead": 1}

    lake.delete_topic("wrong-out")
    lake.topic("wrong-out", 1)
    assert proved(lake)["missing"] == 5


def test_a_function_gets_the_rows_with_their_places(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("called-in", 2)
    lake.configure(p=calling("called-in", "tests.kafka.called:note"))
    lake.produce("called-in", [(b"k%d" % i, bid(i), i % 2) for i in range(10)])

    went_well(lake.run(rivermouth_spark, "p"))

    proof = proved(lake)
    assert proof["ok"], proof
    assert proof["not_checked"] == {"rows_in_a_function": 10}


@pytest.mark.thorough
def test_a_process_connects_once_and_is_called_again_and_again(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("pooled-in", 2)
    pipeline = calling("pooled-in", "tests.kafka.called:log")
    pipeline["source"]["max_offsets_per_trigger"] = 2
    lake.configure(p={**pipeline, "schema": "path STRING"})
    log = lake.folder / "calls.txt"
    lake.produce(
        "pooled-in", [(None, json.dumps({"path": str(log)}).encode(), i % 2) for i in range(16)]
    )

    went_well(lake.run(rivermouth_spark, "p"))

    lines = [each.split() for each in log.read_text(encoding="utf-8").splitlines()]
    connected = [process for word, process in lines if word == "connected"]
    called = [process for word, process in lines if word == "called"]
    assert len(called) >= 8, "a batch has two offsets"
    assert len({*connected}) == len(connected) < len(called)
    assert {*called} == {*connected}


@pytest.mark.thorough
def test_a_function_is_called_for_a_batch_without_a_good_record(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """Otherwise it could not tell that a batch is missing in its database."""
    lake.topic("only-bad-in")
    lake.configure(p=retrying(calling("only-bad-in", "tests.kafka.called:fail_without_rows"), 1))
    lake.produce("only-bad-in", [(None, b"oops", 0)])

    error = refusal(lake.run(rivermouth_spark, "p"))

    assert (error.code, error.found) == ("RM507", "RuntimeError: no row in only-bad-in-0[0,1)")


def test_a_function_that_fails_is_named_and_nothing_is_committed(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("failing-in", 1)
    lake.configure(p=retrying(calling("failing-in", "tests.kafka.called:fail"), 1))
    lake.produce("failing-in", [(None, bid(i), 0) for i in range(3)])

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code == "RM507"
    assert error.found == "RuntimeError: no room for 0"
    assert [each.sequence for each in heard.commits] == [1]


@pytest.mark.thorough
def test_at_most_once_sends_what_stands_although_the_call_for_its_commit_raised(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Recording.record

    def made_and_raised(*commit: Any) -> None:
        record(*commit)
        raise RuntimeError("the answer was lost")

    monkeypatch.setattr(Recording, "record", made_and_raised)
    lake.topic("raised-in")
    lake.topic("raised-out")
    lake.configure(p=sending("raised-in", "raised-out", delivery="at-most-once"))
    lake.produce("raised-in", [(None, bid(i), 0) for i in range(5)])

    went_well(lake.run(rivermouth_spark, "p"))

    assert len(read_back(lake.servers, "raised-out")) == 5


def sending_few(
    lake: Lake, name: str, records: int, delivery: str = "at-most-once", bad: bool = False
) -> None:
    """A pipeline that tries again, with batches of five records, and so many that wait.

    ``bad``: the last record of each batch is.
    """
    lake.topic(f"{name}-in")
    lake.topic(f"{name}-out")
    to = sending(f"{name}-in", f"{name}-out", delivery=delivery)
    to["source"]["max_offsets_per_trigger"] = 5
    lake.configure(p=retrying(to, 60))
    made = (b"oops" if bad and i % 5 == 4 else bid(i) for i in range(records))
    lake.produce(f"{name}-in", [(None, each, 0) for each in made])


@pytest.mark.thorough
def test_at_most_once_sends_what_stands_although_the_offsets_table_failed_before(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of an earlier entry must not come between a commit and its records."""
    project, calls = LakeOffsets.project, list[int]()

    def fails_once(table: LakeOffsets, entries: Any) -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            raise ProjectionFailed("for a moment")
        project(table, entries)

    monkeypatch.setattr(LakeOffsets, "project", fails_once)
    sending_few(lake, "unnoted", 200)

    heard = went_well(lake.run(rivermouth_spark, "p"))

    assert heard.ends[0].retries == 1
    assert len(read_back(lake.servers, "unnoted-out")) == 200
    assert applied(heard) == 200


def test_at_most_once_ends_and_names_what_it_did_not_send_where_the_log_cannot_be_read_back(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits_after, rounds = DeltaLog.commits_after, list[int]()
    cached = list[DataFrame]()

    @contextmanager
    def noted(*given: Any) -> Iterator[DataFrame]:
        with persisted(*given) as rows:
            cached.append(rows)
            try:
                yield rows
            finally:
                cached.remove(rows)

    monkeypatch.setattr(evaluation, "persisted", noted)

    def fails_once(log: DeltaLog, version: int) -> Any:
        if version > 2 and not rounds:
            rounds.append(version)
            raise LogUnreadable("for a moment")
        return commits_after(log, version)

    monkeypatch.setattr(DeltaLog, "commits_after", fails_once)
    sending_few(lake, "unread", 20)

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert (error.code, error.expected) == ("RM508", "all of unread-in-0[10,15)")
    assert "may stand" in error.what
    assert "RM501" in error.found
    assert cached == [], "no batch is left in the cache"
    went_well(lake.run(rivermouth_spark, "p"))
    assert len(read_back(lake.servers, "unread-out")) == 15


def test_an_entry_whose_records_were_not_sent_is_told_and_in_the_offsets_table(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """Nobody may start the pipeline again for long, and the entry stands."""
    lake.topic("untold-in", 2)
    lake.configure(p=calling("untold-in", "tests.kafka.called:fail", delivery="at-most-once"))
    lake.produce("untold-in", [(None, bid(i), i % 2) for i in range(6)])

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert error.code == "RM508"
    assert [each.sequence for each in heard.commits] == [1, 2]
    assert LakeOffsets(Store.of_folder(lake.path("rivermouth.offsets"))).sequence("p") == 2
    [found] = verify(load(lake.file)).pipelines
    assert found.ok, found.problems


def test_doctor_looks_for_what_a_pipeline_sends_to_and_asks_where_it_runs(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIVERMOUTH_PLATFORM", raising=False)
    lake.topic("doctored-in")
    lake.topic("doctored-out")
    lake.configure(
        once=sending("doctored-in", "doctored-out", delivery="at-most-once"),
        least=sending("doctored-in", "doctored-missing"),
        called=calling("doctored-in", "tests.kafka.called:note"),
        broken=calling("doctored-in", "tests.kafka.called:missing"),
    )

    found = {each.name: each for each in check_config(lake.file, unresolved)}

    sent = "format json, records are sent to"
    assert found["pipeline once"] == Check(
        "pipeline once", True, f"{sent} doctored-out, at-most-once"
    )
    assert found["pipeline called"].found == f"{sent} tests.kafka.called:note, at-least-once"
    assert not found["pipeline broken"].ok
    assert "missing" in found["pipeline broken"].found
    assert found["topic doctored-out"].ok
    assert "RM302" in found["topic doctored-missing"].found

    monkeypatch.setenv("RIVERMOUTH_PLATFORM", "serverless")
    found = {each.name: each for each in check_config(lake.file, unresolved)}
    assert [name for name, each in found.items() if "RM209" in each.found] == [
        "pipeline once",
        "pipeline called",
        "pipeline broken",
    ]
    assert found["pipeline least"].ok
