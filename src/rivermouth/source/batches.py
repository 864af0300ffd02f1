"""What a source feeds with micro-batches, when, and the options of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rivermouth.config import Pipeline, Source
from rivermouth.config.platforms import Capability, Platform
from rivermouth.kafka.options import spark_options
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Stop(Protocol):
    """What ends the reading of a source, as a ``threading.Event`` does."""

    def is_set(self) -> bool:
        """Whether the reading is to end."""

    def wait(self, timeout: float) -> bool:
        """Wait for it, at most so many seconds; whether the reading is to end."""


class Batches(Protocol):
    """One pipeline that is open, see ``run.ingest``."""

    @property
    def pipeline(self) -> Pipeline:
        """Its configuration."""

    def batch(
        self,
        raw: DataFrame,
        ranges: Sequence[OffsetRange],
        was_read: Callable[[], object] = lambda: None,
    ) -> None:
        """Commit one micro-batch of raw Kafka rows that covers exactly ``ranges``.

        ``was_read`` may be called once ``raw`` will hardly be read again: only the commit is left;
        and before that, where Kafka already holds another full batch.
        """

    def watermarks(self, position: Position) -> Mapping[TopicPartition, Watermarks]:
        """What Kafka holds now. Raises the Halt that applies to ``position``."""


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
    return {"includeHeaders": "true"} if pipeline.reads_headers else {}


def task_options(source: Source) -> dict[str, str]:
    """In how many parts Spark reads a batch, whoever plans it. The offsets stay the same."""
    given = {
        "minPartitions": source.min_partitions,
        "maxRecordsPerPartition": source.max_records_per_partition,
    }
    return {name: str(number) for name, number in given.items() if number is not None}
