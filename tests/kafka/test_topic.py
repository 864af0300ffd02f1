"""What a topic of a real broker holds, with who reads it and how long that is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

import pytest
from confluent_kafka import Producer

import rivermouth
from rivermouth.errors import TopicMissing
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.testing import create_topic
from tests.kafka.ledgers import read_up_to
from tests.lake import Lake
from tests.waiting import wait_for_markers

pytestmark = pytest.mark.kafka

DAY_MS = 86_400_000
START_MS = int(datetime(2126, 11, 1, 6, tzinfo=timezone.utc).timestamp()) * 1000
"""In a hundred years, so that no test sees the broker delete anything."""

ANY_TIME = {"message.timestamp.after.max.ms": str(2**62)}
"""Kafka 4 refuses records from the future otherwise."""


def stamp(offset: int) -> int:
    """The timestamp of each record: one comes every minute."""
    return START_MS + offset * 60_000


def write(options: dict[str, Any], topic: str, partition: int, offsets: Iterable[int]) -> Producer:
    """Records at these offsets; with a ``transactional.id``, in a transaction that stays open."""
    failed: list[object] = []
    # Otherwise a batch that a new topic refuses at first comes after those behind it.
    producer = Producer({"enable.idempotence": True, **options, "log_level": 2})
    if "transactional.id" in options:
        producer.init_transactions(60)
        producer.begin_transaction()
    for each in offsets:
        producer.produce(
            topic,
            b"{}",
            partition=partition,
            timestamp=stamp(each),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert failed == []
    return producer


def pipeline(table: str, **source: Any) -> dict[str, Any]:
    return {
        "source": {"topics": ["topic-shown"], "format": "json", **source},
        "schema": "id BIGINT",
        "target": {"table": f"s.{table}"},
    }


def test_a_topic_is_told_with_its_offsets_its_readers_and_what_retention_takes_next(
    lake: Lake,
) -> None:
    create_topic(lake.servers, "topic-shown", 2, {"retention.ms": str(7 * DAY_MS), **ANY_TIME})
    servers = {"bootstrap.servers": lake.servers}
    write(servers, "topic-shown", 0, range(5))
    aborted = {**servers, "transactional.id": "topic-shown-aborts"}
    write(aborted, "topic-shown", 1, range(3)).abort_transaction(60)
    wait_for_markers(aborted)
    holding = write({**servers, "transactional.id": "topic-shown-open"}, "topic-shown", 0, [5, 6])
    config = lake.configure(behind=pipeline("behind"), new=pipeline("new"))
    first, second = TopicPartition("topic-shown", 0), TopicPartition("topic-shown", 1)
    read_up_to(config, "behind", Position({first: 2, second: 0}))

    at = datetime.fromtimestamp(stamp(3) / 1000, timezone.utc)
    now_s = (stamp(2) + DAY_MS) / 1000
    found = rivermouth.topic(config, "topic-shown", at=at, now=lambda: now_s).as_dict()
    shown = lake.command("topic", "topic-shown", "--at", "2126-11-01T06:03:00Z")
    as_json = lake.command("topic", "topic-shown", "--json")
    holding.abort_transaction(60)

    assert found["unknown"] == {}
    assert found["retention"] == {
        "cleanup.policy": "delete",
        "retention.ms": 7 * DAY_MS,
        "retention.bytes": None,
    }
    assert found["sums"] == {
        "partitions": 2,
        "records_at_most": 11,
        "held_back": 2,
        "lag": {"behind": 7, "new": 9},
    }
    replicas = {"leader": found["partitions"][0]["leader"]}
    replicas |= {each: [replicas["leader"]] for each in ("replicas", "in_sync")}
    assert found["partitions"] == [
        {"partition": 0, **replicas, "earliest": 0, "last_stable": 5, "latest": 7, "at": 3},
        {"partition": 1, **replicas, "earliest": 0, "last_stable": 4, "latest": 4, "at": None},
    ]
    behind, new = found["pipelines"]
    assert (behind["reason"], behind["lag"], behind["seconds_left"]) == (None, 7, 6 * 86_400)
    left = {"outlook": "by age", "seconds": 6 * 86_400}
    basis = behind["partitions"][0]["time_left"].pop("basis")
    assert basis.startswith("the record's timestamp plus retention.ms 604,800,000")
    assert behind["partitions"][0] == {
        "partition": 0,
        "position": 2,
        "recorded": True,
        "lag": 3,
        "next_record_at": "2126-11-01T06:02:00.000Z",
        "time_left": left,
    }
    assert behind["partitions"][1]["lag"] == 4
    assert behind["partitions"][1]["time_left"]["outlook"] == "nothing waits", "all was aborted"
    assert [(each["position"], each["recorded"]) for each in new["partitions"]] == [
        (0, False),
        (0, False),
    ]
    assert new["partitions"][0]["next_record_at"] == "2126-11-01T06:00:00.000Z"

    assert (shown.returncode, shown.stderr) == (0, "")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    summary = "topic-shown: 2 partitions, at most 11 records, 2 behind open transactions"
    assert summary in shown.stdout
    assert as_json.returncode == 0
    facts = json.loads(as_json.stdout)
    assert (facts["sums"], facts["at"]) == (found["sums"], None)


def test_a_topic_that_does_not_exist_is_exit_code_1(lake: Lake) -> None:
    lake.configure(behind=pipeline("behind"))
    ended = lake.command("topic", "topic-that-is-nowhere")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"RM302 {lake.servers}")


def test_all_topics_that_do_not_exist_are_named_at_once(lake: Lake) -> None:
    lake.topic("topic-that-is-here")
    kafka = Kafka({"bootstrap.servers": lake.servers})
    with pytest.raises(TopicMissing, match="topics topic-gone-1, topic-gone-2 do not exist"):
        kafka.facts(["topic-gone-1", "topic-that-is-here", "topic-gone-2"])
    with pytest.raises(TopicMissing, match="topic topic-gone-1 does not exist"):
        kafka.identities(["topic-that-is-here", "topic-gone-1"])


@pytest.mark.thorough
def test_the_first_record_of_many_places_is_found_by_one_consumer(lake: Lake) -> None:
    create_topic(lake.servers, "topic-firsts", 20, ANY_TIME)
    servers = {"bootstrap.servers": lake.servers}
    for each in range(0, 20, 2):
        write(servers, "topic-firsts", each, range(3_000 if each == 0 else 3))
    even = {place: 2_999 if place == 0 else 2 for place in range(0, 20, 2)}
    places = [(TopicPartition("topic-firsts", each), at) for each in even for at in (0, 2, 3)]
    places += [(TopicPartition("topic-firsts", each), 0) for each in range(1, 20, 2)]

    found = Kafka(servers).first_timestamps(places)

    last = {TopicPartition("topic-firsts", each): at for each, at in even.items()}
    assert found == {
        (place, at): stamp(at) if at <= last.get(place, -1) else None for place, at in places
    }
