"""Options of Spark's Kafka source: what it keeps unread does not grow with the partitions."""

from __future__ import annotations

import pytest

from rivermouth.config import Source, Topics
from rivermouth.config.platforms import LOCAL, STANDARD
from rivermouth.source.batches import READER_DEFAULTS, kafka_options, reader_options, task_options

pytestmark = pytest.mark.unit

FETCH = "kafka.max.partition.fetch.bytes"


@pytest.mark.parametrize(
    ("partitions", "fetch"),
    [
        (0, 16 << 20),
        (1, 16 << 20),
        (16, 16 << 20),
        (64, 4 << 20),
        (2_000, 134_217),
        (1_000_000, 128 << 10),
    ],
)
def test_the_more_partitions_there_are_the_less_each_may_fetch(partitions: int, fetch: int) -> None:
    options = reader_options({}, partitions)
    assert options[FETCH] == str(fetch)
    assert {*READER_DEFAULTS} <= {*options}


def test_no_question_waits_behind_a_fetch_at_the_end_of_a_log() -> None:
    """The client's default is 500 ms, for each partition in each batch that reads to the end."""
    assert reader_options({})["kafka.fetch.max.wait.ms"] == "0"


def test_an_option_of_the_configuration_wins() -> None:
    assert reader_options({FETCH: "1048576"}, 2_000)[FETCH] == "1048576"
    assert reader_options({"kafka.isolation.level": "x"})["kafka.isolation.level"] != "x"


def test_an_option_of_a_source_wins_over_that_of_the_cluster_and_the_platform_is_heeded() -> None:
    cluster = {"bootstrap.servers": "k:1", "client.rack": "a", "sasl.mechanism": "PLAIN"}
    cluster |= {"sasl.username": "u", "sasl.password": "p"}
    told = kafka_options(cluster, {"kafka.client.rack": "b"}, LOCAL)
    assert told["kafka.bootstrap.servers"] == "k:1"
    assert told["kafka.client.rack"] == "b"
    assert told["kafka.sasl.jaas.config"].startswith("org.apache.kafka.")
    shaded = kafka_options(cluster, {}, STANDARD)
    assert shaded["kafka.sasl.jaas.config"].startswith("kafkashaded.")
    assert shaded["kafka.client.rack"] == "a"


def test_spark_is_told_how_to_split_a_batch_only_where_somebody_says_so() -> None:
    plain = Source(topics=Topics(("t",)), format="json")
    assert task_options(plain) == {}
    split = plain.model_copy(update={"min_partitions": 8, "max_records_per_partition": 9_000})
    assert task_options(split) == {"minPartitions": "8", "maxRecordsPerPartition": "9000"}
