"""What a pipeline reads, as values: frozen, strict, complete."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from rivermouth.config.decoding import Lenient, Timestamps
from rivermouth.config.metadata import Metadata
from rivermouth.config.start import Start
from rivermouth.config.value_types import (
    Always,
    Count,
    DataLossChoice,
    Duration,
    FormatName,
    GroupName,
    KeyFormName,
    MissingTimeChoice,
    SourceOptions,
    StartAt,
    TaskCount,
    TopicsRead,
)
from rivermouth.config.values import OnDataLoss, OnMissingTime
from rivermouth.config.written import InPlace, Model, SparkName


class Source(Model):
    """What a pipeline reads."""

    topics: Annotated[TopicsRead, SparkName("subscribe", listed=True)] = Field(
        description="The topics to read: a list, a pattern that whole names match, or `assign`:"
        " some partitions of each.",
        examples=[["orders"], {"pattern": "orders_.*"}, {"assign": {"orders": [0, 1]}}],
    )
    format: FormatName = Field(description="How the values of records are encoded.")
    timestamps: Annotated[
        Timestamps, Field(description="How times in records are read, see [json](json.md).")
    ] = Timestamps()
    lenient: Lenient = Field(
        default=(),
        description="What records may have beyond the strict rules, see [json](json.md).",
        examples=[["number_in_text", "any_case"]],
    )
    start: Annotated[StartAt, SparkName("startingOffsets")] = Field(
        default=Start(),
        description="Where to start if the table has no ledger yet. Later it has no effect.",
        examples=[
            "earliest",
            "latest",
            "2026-11-01T06:00:00Z",
            {"orders": {"0": 100, "1": "latest"}},
        ],
    )
    on_missing_time: Annotated[
        MissingTimeChoice, SparkName("startingOffsetsByTimestampStrategy")
    ] = Field(
        default=OnMissingTime.ERROR,
        description="What to do if a partition has no record of the time in `start`, nor a later"
        " one. `error`: stop. `latest`: start at its end.",
    )
    key: KeyFormName | None = Field(
        default=None,
        description="How the message key holds the columns of `keys`. If it is given, a record"
        " without a value deletes the row of its key.",
    )
    metadata: Metadata = ()
    max_offsets_per_trigger: Annotated[Count, SparkName("maxOffsetsPerTrigger")] = Field(
        default=500_000, description="The most offsets in one batch."
    )
    min_offsets_per_trigger: Annotated[Count | None, SparkName("minOffsetsPerTrigger")] = Field(
        default=None,
        description="In `run --continuous` a batch waits until so many offsets are there. A run"
        " that ends does not wait. At most `max_offsets_per_trigger`.",
    )
    max_trigger_delay: Annotated[Duration, SparkName("maxTriggerDelay")] = Field(
        default=timedelta(minutes=15),
        description="The longest that a batch waits for `min_offsets_per_trigger`, since the last"
        " batch was due.",
    )
    max_rate_per_partition: Count | None = Field(
        default=None,
        description="The most offsets of each partition in a second, see [reading](reading.md).",
    )
    min_partitions: Annotated[TaskCount | None, SparkName("minPartitions")] = Field(
        default=None,
        description="The least number of tasks that read a batch: Spark splits its largest ranges.",
    )
    max_records_per_partition: Annotated[Count | None, SparkName("maxRecordsPerPartition")] = Field(
        default=None,
        description="The most offsets that one task reads: Spark splits larger ranges.",
    )
    on_data_loss: DataLossChoice = Field(
        default=OnDataLoss.HALT,
        description="What to do if Kafka has deleted records that were not read. `halt`: stop."
        " `record`: write the range into the ledger as lost, and continue after it.",
    )
    fail_on_data_loss: Always = Field(
        default=True,
        validation_alias="failOnDataLoss",
        exclude=True,
        repr=False,
        description="Spark's option. Only `true` is accepted, and it changes nothing: a loss is"
        " never silent.",
    )
    mirror_group: GroupName | None = Field(
        default=None,
        description="A consumer group into which a run also writes the position, for monitors"
        " alone. Nothing reads it back.",
        examples=["monitor-orders"],
    )
    options: Annotated[SourceOptions, InPlace("kafka.")] = Field(
        default_factory=dict,
        description="An option of the Kafka client for this source alone. Servers and secrets"
        " belong in the section `kafka`.",
    )
    """Each name starts with ``kafka.``."""

    @property
    def in_parts(self) -> bool:
        """Whether Spark may read the range of one partition in several parts."""
        return self.min_partitions is not None or self.max_records_per_partition is not None
