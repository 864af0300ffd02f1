"""Options of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Mapping

READER_DEFAULTS: Mapping[str, str] = {
    # Spark asks the broker for both ends of a partition after every poll, and polls 500
    # records by default: large polls are worth 1.8x on the raw read.
    "kafka.max.poll.records": "50000",
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
}


def reader_options(kafka: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source, whoever plans the batches, over those in ``kafka``."""
    return {
        **READER_DEFAULTS,
        **kafka,
        "kafka.isolation.level": "read_committed",
        "kafka.allow.auto.create.topics": "false",
        "failOnDataLoss": "true",
    }
