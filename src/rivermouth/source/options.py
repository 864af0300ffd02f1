"""Options of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.config import Pipeline, Source
from rivermouth.kafka.options import spark_options
from rivermouth.registry.platforms import Capability, Platform

_UNREAD_BYTES = 256 << 20
_FETCH_LEAST, _FETCH_MOST = 128 << 10, 16 << 20

READER_DEFAULTS: Mapping[str, str] = {
    # Spark asks the broker for both ends of a partition after every poll, and polls 500
    # records by default: large polls are worth 1.8x on the raw read.
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.partition.fetch.bytes": str(_FETCH_MOST),
    "kafka.receive.buffer.bytes": str(4 << 20),
    # At the end of a log the next fetch waits at the broker for records, and those questions wait
    # behind it: by default half a second for each partition, in each batch that reads to the end.
    "kafka.fetch.max.wait.ms": "0",
}


def kafka_options(
    kafka: Mapping[str, str], own: Mapping[str, str], platform: Platform
) -> dict[str, str]:
    """What Spark's source is told of Kafka: the cluster's options, over them those of a source.

    ``kafka`` are the revealed ones, and ``own`` begin with ``kafka.``. Raises KafkaRefused.
    """
    named = {name.removeprefix("kafka."): value for name, value in own.items()}
    return spark_options({**kafka, **named}, databricks=platform.has(Capability.SHADED_KAFKA))


def reader_options(kafka: Mapping[str, str], partitions: int = 1) -> dict[str, str]:
    """The options of Spark's Kafka source, whoever plans the batches, over those in ``kafka``.

    ``partitions`` are read by this process. Spark keeps a consumer for each of them, with what it
    has fetched and not read yet; so each may fetch less, the more there are.
    """
    fetch = min(max(_UNREAD_BYTES // max(partitions, 1), _FETCH_LEAST), _FETCH_MOST)
    return {
        **READER_DEFAULTS,
        "kafka.max.partition.fetch.bytes": str(fetch),
        **kafka,
        "kafka.isolation.level": "read_committed",
        "kafka.allow.auto.create.topics": "false",
        "failOnDataLoss": "true",
    }


def header_options(pipeline: Pipeline) -> dict[str, str]:
    """What makes Spark read headers, whoever plans the batches: only where they are asked for."""
    asked = pipeline.target.forward_headers or "headers" in pipeline.source.metadata
    return {"includeHeaders": "true"} if asked else {}


def task_options(source: Source) -> dict[str, str]:
    """In how many parts Spark reads a batch, whoever plans it. The offsets stay the same."""
    given = {
        "minPartitions": source.min_partitions,
        "maxRecordsPerPartition": source.max_records_per_partition,
    }
    return {name: str(number) for name, number in given.items() if number is not None}
