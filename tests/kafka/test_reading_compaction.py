"""Ranges of a topic that Kafka compacts: the same rows each time, and counts instead of guesses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import admin
from pyspark.sql import SparkSession

import rivermouth
from rivermouth import OffsetRange, TopicPartition
from rivermouth.config import Config
from rivermouth.local.broker import Broker
from rivermouth.replay.readable import ReadableRange
from rivermouth.verify.kafka.client import KafkaSource, client_options
from tests.kafka.test_reading import in_transaction, places
from tests.kafka.test_verify_compaction import COMPACT
from tests.lake import Lake, append_pipeline, bid
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPIC = "compacted"
_ADMIN: Any = admin  # it does not export all that it has


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake at a broker of its own whose log cleaner does not wait."""
    with Broker(settings={"log.cleaner.backoff.ms": "100"}) as broker:
        yield Lake(tmp_path, broker.bootstrap_servers)


def compact(lake: Lake, config: Config, offsets: Iterable[int]) -> None:
    """Let Kafka compact from now on, and write until the cleaner has removed these offsets."""
    made, set_to = _ADMIN.ConfigEntry, _ADMIN.AlterConfigOpType.SET
    changes = [made(*each, incremental_operation=set_to) for each in COMPACT.items()]
    kind = _ADMIN.ResourceType.TOPIC
    client = _ADMIN.AdminClient({"bootstrap.servers": lake.servers})
    asked = [_ADMIN.ConfigResource(kind, TOPIC, incremental_configs=changes)]
    for done in client.incremental_alter_configs(asked).values():
        done.result(30)
    source = KafkaSource(client_options(config))
    deadline = time.monotonic() + PATIENCE_S
    while source.existing((TOPIC, 0), offsets):
        assert time.monotonic() < deadline, "the log cleaner did not run"
        lake.produce(TOPIC, [(b"filler", bid(0), 0)])
        time.sleep(0.05)


def span(start: int, until: int) -> OffsetRange:
    return OffsetRange(TopicPartition(TOPIC, 0), start, until)


@pytest.mark.thorough
def test_what_compaction_took_is_told_by_counts_and_the_rest_comes_each_time(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic(TOPIC)
    config = lake.configure(p=append_pipeline(TOPIC))
    lake.produce(TOPIC, [(b"%d" % (i % 3), bid(i), 0) for i in range(9)])
    in_transaction(lake, TOPIC, bid(90), commit=False, key=b"2")  # 9, marker 10
    lake.produce(TOPIC, [(b"last", bid(11), 0)])
    whole, first, rest = span(0, 12), span(0, 5), span(5, 12)
    [before] = rivermouth.readable(config, [whole])
    assert before == ReadableRange(whole, records=10, first=0, last=11)
    raw = rivermouth.read(rivermouth_spark, config, [whole])
    assert places(raw) == [(0, each) for each in (*range(9), 11)]

    compact(lake, config, range(6))

    left = [(0, each) for each in (6, 7, 8, 11)]
    assert places(raw) == left, "the same value, evaluated again"
    again = rivermouth.read(rivermouth_spark, config, [first, rest], pipeline="p")
    assert [places(again.select("_kafka.*")) for _ in range(2)] == [left, left]
    assert sorted(row[0] for row in again.select("row.auction").collect()) == [6, 7, 8, 11]
    assert rivermouth.readable(config, [whole]) == (
        ReadableRange(whole, records=4, first=6, last=11),
    )
    assert rivermouth.readable(config, [first, rest]) == (
        ReadableRange(first),
        ReadableRange(rest, records=4, first=6, last=11),
    )
