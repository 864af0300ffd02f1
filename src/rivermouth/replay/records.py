"""Exactly the records of given ranges, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.config.platforms import platform_of
from rivermouth.config.source import HEADERS, KAFKA_COLUMNS
from rivermouth.formats.decoder import decoder
from rivermouth.local.scratch import scratch_root
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.replay.ranges import configured, merged, one_per_partition
from rivermouth.replay.readable import Given, checked
from rivermouth.schemas.known import schemas_of, with_schemas
from rivermouth.source.batches import header_options, kafka_options, reader_options
from rivermouth.source.driver_planned import read_ranges
from rivermouth.spark.errors import translate
from rivermouth.spark.session import balanced

RAW = {**KAFKA_COLUMNS, "timestampType": "INT"}
"""The columns of Kafka rows, with their types."""


def read(
    spark: SparkSession,
    config: Config,
    ranges: Iterable[Given],
    pipeline: str | None = None,
    *,
    secrets: Secrets = unresolved,
) -> DataFrame:
    """The records of ``ranges`` that a ``read_committed`` reader sees, one row each, in no order.

    ``ranges`` are ``OffsetRange`` or what ``rivermouth.ranges`` gives, in any order; each offset
    once. Without ``pipeline`` the rows are Kafka's: key, value, topic, partition, offset,
    timestamp, timestampType. With one they are decoded by its format and columns, as they are
    configured now (see ``formats.tasks``):

    - ``row`` STRUCT of the configured columns; it says nothing of a tombstone or a bad record
    - ``key_columns`` STRUCT of the key columns, for a target with ``keys``
    - ``_kafka`` STRUCT of topic, partition, offset and timestamp, and of what ``source.metadata``
      asks for
    - ``tombstone`` BOOLEAN
    - ``code`` STRING: null for a good record, ``skipped`` for one that makes no row, else why a run
      puts it into quarantine
    - ``reason`` STRING: what is wrong with a record that cannot be decoded
    - ``key`` and ``value`` BINARY

    Times without a zone are decoded in the zone of the session; runs have UTC there.

    The DataFrame is lazy and reads Kafka each time it is evaluated: always the same records, also
    after partitions were added, as long as Kafka keeps them. If retention deletes some of them
    later, an evaluation fails (``failOnDataLoss``). What compaction removes is not there any more:
    ``rivermouth.readable`` counts. Ranges of one partition that do not touch are read by as many
    readers. ``secrets`` knows what the configuration only names.

    Raises, before it returns: RangesRefused for ranges that overlap, end after the last record that
    may be read, or lie in a partition that does not exist, and for a pipeline that is not
    configured; RetentionLost for a range that begins before the first offset that Kafka holds;
    TopicMissing; TopicRecreated and OtherCluster for recorded ranges of another topic or cluster;
    other errors of Kafka as SourceError. Of schemas in a registry those are known that a run on
    this machine has met, and those of the subjects of the topics; a record of another one fails the
    evaluation (SchemasUnknown).
    """
    chosen = configured(config, pipeline) if pipeline is not None else None
    if chosen is not None:
        chosen = with_schemas(chosen, schemas_of(config, secrets, scratch_root()))
    wanted = checked(config, ranges, secrets)
    try:
        raw = _raw(spark, _options(config, chosen, secrets), merged(wanted))
        return raw if chosen is None else decoder(chosen, whole=True)(raw)
    except PySparkException as fault:
        raise translate(fault, pipeline or str(config.path)) from fault


def _options(config: Config, pipeline: Pipeline | None, secrets: Secrets) -> dict[str, str]:
    kafka, platform = config.kafka.revealed(secrets), platform_of()
    if pipeline is None:
        return kafka_options(kafka, {}, platform)
    return kafka_options(kafka, pipeline.source.options, platform) | header_options(pipeline)


def _raw(
    spark: SparkSession, options: dict[str, str], ranges: tuple[OffsetRange, ...]
) -> DataFrame:
    if not ranges:
        columns = {**RAW, **(HEADERS if "includeHeaders" in options else {})}
        return spark.createDataFrame([], ", ".join(f"{n} {kind}" for n, kind in columns.items()))
    parts = one_per_partition(ranges)
    reader = reader_options(options, len({each.topic_partition for each in ranges}))
    return balanced(DataFrame.unionAll, [read_ranges(spark, reader, each) for each in parts])
