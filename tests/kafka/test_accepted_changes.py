"""A source that was changed, on real parts: halt, ``resume``, run, and the proof of it all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.operate.pace import State
from rivermouth.operate.status import status
from rivermouth.testing import create_topic
from rivermouth.verification import PipelineProof, Since, beside_offsets, verify
from tests.faults.outcomes import refusal, went_well
from tests.folders import lake_of
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def bids(*numbers: int) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(None, bid(n), 0) for n in numbers]


def read_once(lake: Lake, session: SparkSession, topic: str, *numbers: int) -> None:
    """A new topic with these bids, all of which the pipeline has read."""
    lake.topic(topic)
    lake.configure(p=append_pipeline(topic))
    lake.produce(topic, bids(*numbers))
    went_well(lake.run(session, "p"))


def resume(lake: Lake, session: SparkSession, *words: str) -> dict[str, Any]:
    """``rivermouth resume FILE p --accept WORDS``; its JSON."""
    ended = lake.command("resume", "p", "--json", "--accept", *words, spark=session)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def proof(lake: Lake) -> PipelineProof:
    [found] = verify(load(lake.file)).pipelines
    assert found.problems == ()
    assert found.ok
    return found


def check_status(lake: Lake, *accepted: tuple[str, int]) -> None:
    """The pipeline has caught up, and what was accepted is told."""
    [found] = status(load(lake.file)).pipelines
    assert (found.state, found.reason) == (State.OK, None)
    assert found.accepted == accepted


def auctions(lake: Lake, table: str) -> list[int]:
    return sorted(row["auction"] for row in lake.rows(table))


def test_a_recreated_topic_is_read_once_that_is_accepted_and_both_are_told_apart(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("again")
    lake.configure(p=append_pipeline("again"))
    lake.produce("again", bids(0, 1, 2, 3))
    lake.produce("again", [(None, b"{bad", 0)])
    went_well(lake.run(rivermouth_spark, "p"))
    lake.delete_topic("again")
    lake.topic("again", 2)
    lake.produce("again", bids(10, 11))
    lake.produce("again", [(None, bid(12), 1)])
    halted = refusal(lake.run(rivermouth_spark, "p"))
    assert halted.code == "RM404"
    assert "resume CONFIG p --accept topic" in str(halted)

    shown = resume(lake, rivermouth_spark, "topic", "--dry-run")
    assert (shown["accepted"], shown["position"]) == (None, {"again": {"0": 0, "1": 0}})
    assert "again-0 stood at 5 and continues at 0" in shown["plan"]["means"]
    assert refusal(lake.run(rivermouth_spark, "p")).code == "RM404"
    assert resume(lake, rivermouth_spark, "topic")["accepted"] == "topic"

    went_well(lake.run(rivermouth_spark, "p", audit=True))
    assert auctions(lake, "bronze.again") == [0, 1, 2, 3, 10, 11, 12]
    found = proof(lake)
    assert found.records == 3
    assert found.accepted == ("topic, in entry 3",)
    assert {what.value: n for what, n in found.left.items()} == {"rows_before_accepted_changes": 5}
    check_status(lake, ("topic", 3))

    lake.produce("again", bids(13, 14, 15))  # behind the position of the old topic, which was 5
    went_well(lake.run(rivermouth_spark, "p"))
    check_a_part_is_enough(lake, rivermouth_spark)


def check_a_part_is_enough(lake: Lake, session: SparkSession) -> None:
    """A proof of everything is recorded, and the next one reads only the record that came since."""
    config = load(lake.file)
    records = beside_offsets(lake_of(config))
    assert verify(config, proofs=records).ok
    lake.produce("again", bids(16))
    went_well(lake.run(session, "p"))
    [part] = verify(config, since=Since(), proofs=records).pipelines
    assert (part.problems, part.read_all, part.records) == ((), None, 1)


@pytest.mark.thorough
def test_a_pipeline_moves_to_another_cluster_whose_mirror_has_other_offsets(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    """The mirror lacks the first record, and began with two of its own."""
    read_once(lake, rivermouth_spark, "mirrored", 0, 1, 2)
    lake.produce("mirrored", bids(3))
    with Broker() as other:
        moved = _mirror(lake, other, "mirrored", [*bids(90, 91), *bids(1, 2, 3, 4)])
        assert refusal(moved.run(rivermouth_spark, "p")).code == "RM405"
        positions = lake.folder / "positions.json"
        positions.write_text('{"mirrored": {"0": 4}}')

        resume(moved, rivermouth_spark, "cluster", "--offsets", str(positions))

        went_well(moved.run(rivermouth_spark, "p"))
        assert auctions(lake, "bronze.mirrored") == [0, 1, 2, 3, 4]
        found = proof(moved)
        assert (found.records, found.accepted) == (2, ("cluster, in entry 3",))
        check_status(moved, ("cluster", 3))


@pytest.mark.thorough
@pytest.mark.parametrize("same_times", [True, False])
def test_a_mirror_with_the_same_offsets_is_proved_from_the_first_record_on(
    lake: Lake, rivermouth_spark: SparkSession, same_times: bool
) -> None:
    """All is compared with the mirror, the timestamps too."""
    topic = f"same-offsets-{same_times}".lower()
    read_once(lake, rivermouth_spark, topic, 0, 1, 2)
    table = f"bronze.{topic.replace('-', '_')}"
    rows = sorted((row["_kafka"] for row in lake.rows(table)), key=lambda at: at["offset"])
    stamps = [round(at["timestamp"].timestamp() * 1000) for at in rows]
    assert len(stamps) == 3
    with Broker() as other:
        moved = _mirror(lake, other, topic, bids(0, 1, 2, 3), stamps if same_times else ())
        resume(moved, rivermouth_spark, "cluster", "--offsets", "same")

        went_well(moved.run(rivermouth_spark, "p"))

        assert auctions(lake, table) == [0, 1, 2, 3]
        [found] = verify(load(moved.file)).pipelines
        others = () if same_times else range(3)
        assert found.problems == tuple(
            f"{topic}-0@{n}: other values in _kafka.timestamp" for n in others
        )
        assert (found.records, found.complete) == (4, True)


def _mirror(
    lake: Lake, other: Broker, topic: str, records: Iterable[Any], stamps: Iterable[int] = ()
) -> Lake:
    """The lake over another cluster with these records; the first ones get these timestamps."""
    create_topic(other.bootstrap_servers, topic)
    producer = Producer({"bootstrap.servers": other.bootstrap_servers})
    for (key, value, partition), stamp in zip(records, chain(stamps, repeat(0)), strict=False):
        producer.produce(topic, value, key, partition, timestamp=stamp)
    assert producer.flush(PATIENCE_S) == 0
    moved = Lake(lake.folder, other.bootstrap_servers)
    moved.configure(p=append_pipeline(topic))
    return moved


@pytest.mark.thorough
def test_a_truncated_log_is_read_on_from_where_it_was_cut(
    tmp_path: Path, rivermouth_spark: SparkSession
) -> None:
    with Broker() as broker:
        lake = Lake(tmp_path, broker.bootstrap_servers)
        read_once(lake, rivermouth_spark, "cut-short", 0, 1, 2, 3, 4)
        broker.stop()
        for file in (broker.directory / "data" / "cut-short-0").glob("0*"):
            file.unlink()
        broker.start()
        lake.produce("cut-short", bids(10, 11, 12, 13, 14, 15, 16))
        assert refusal(lake.run(rivermouth_spark, "p")).code == "RM416"

        shown = resume(lake, rivermouth_spark, "truncation")

        assert shown["plan"]["changes"]["moved"] == [["cut-short", 0, 5, 0]]
        went_well(lake.run(rivermouth_spark, "p", audit=True))
        assert auctions(lake, "bronze.cut_short") == [0, 1, 2, 3, 4, *range(10, 17)]
        assert proof(lake).records == 7
        check_status(lake, ("truncation", 3))


@pytest.mark.thorough
def test_a_form_of_message_keys_may_be_added_and_each_record_is_judged_by_its_own_time(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("keyed")
    keyed = upsert_pipeline("keyed")
    plain = {**keyed, "source": {k: v for k, v in keyed["source"].items() if k != "key"}}
    lake.configure(p=plain)
    lake.produce(
        "keyed", [(b"1", order(1, "a", 1), 0), (b"1", None, 0), (b"2", order(2, "a", 1), 0)]
    )
    assert went_well(lake.run(rivermouth_spark, "p")).ends[0].quarantined == 1
    lake.configure(p=keyed)
    halted = refusal(lake.run(rivermouth_spark, "p"))
    assert (halted.code, "--accept identity" in str(halted)) == ("RM408", True)

    resume(lake, rivermouth_spark, "identity")

    lake.produce("keyed", [(b"2", None, 0), (b"3", order(3, "a", 1), 0)])
    went_well(lake.run(rivermouth_spark, "p"))
    assert sorted(row["order_id"] for row in lake.rows("silver.keyed")) == [1, 3]
    found = proof(lake)
    assert (found.records, found.quarantined, found.complete) == (5, 1, True)
    check_status(lake, ("identity", 3))
