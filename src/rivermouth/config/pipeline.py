"""A pipeline as values, with what it reads and what it writes: frozen, strict, complete.

It is a part of the models in ``models``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from rivermouth.config.problems import Fault, Kind, Refused, checked
from rivermouth.config.retry import Retry
from rivermouth.config.rules import pipeline_faults
from rivermouth.config.sound import given
from rivermouth.config.start import Start
from rivermouth.config.value_types import (
    Always,
    Columns,
    Count,
    DataLossChoice,
    Duration,
    FormatName,
    GroupName,
    KeyFormName,
    Keys,
    LedgerName,
    MissingTimeChoice,
    OrderBy,
    PipelineName,
    Properties,
    ShapeName,
    SourceOptions,
    StartAt,
    Table,
    TopicsRead,
)
from rivermouth.config.values import OnDataLoss, OnMissingTime, check_tasks
from rivermouth.config.written import InPlace, Model, SparkName, Unwritten
from rivermouth.registry.formats import FORMATS, Format, KeyForm
from rivermouth.registry.shapes import SHAPES, Shape

JsonValue = str | list[str] | None

Trigger = Annotated[
    Duration,
    Field(
        description="How often a batch starts in `run --continuous`. If a batch takes longer,"
        " the next one starts as soon as it is done.",
        examples=["10s", "500ms", "2m"],
    ),
]
TaskCount = Annotated[Count, AfterValidator(check_tasks)]
RetryTimes = Annotated[
    Retry, Field(description="How long a run tries again what may pass by itself.")
]
TEN_SECONDS = timedelta(seconds=10)


class Source(Model):
    """What a pipeline reads."""

    topics: Annotated[TopicsRead, SparkName("subscribe", listed=True)] = Field(
        description="The topics to read: a list, or a pattern that whole names match.",
        examples=[["orders"], ["orders", "payments"], {"pattern": "orders_.*"}],
    )
    format: FormatName = Field(description="How the values of records are encoded.")
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


class Target(Model):
    """What a pipeline writes."""

    table: Table = Field(
        description="The table. The schema `rivermouth` and names that end in `_quarantine` are"
        " reserved.",
        examples=["silver.orders"],
    )
    mode: ShapeName = Field(default="append", description="What the records become.")
    keys: Keys = Field(
        default=(),
        description="The columns that identify a row. Their types are primitive and not floating"
        " point.",
        examples=[["order_id"]],
    )
    order_by: OrderBy = Field(
        default=(),
        description="The row with the greater value is newer. If they are equal, Kafka partition"
        " and offset decide. If the list is empty, the row that was read later is newer; in one"
        " batch, partition and offset decide.",
        examples=[["updated_at"]],
    )
    properties: Properties = Field(
        default_factory=dict, description="Delta table properties, set when the table is created."
    )


class Pipeline(Model):
    """One way from topics to a table."""

    name: Annotated[PipelineName, Unwritten()]
    source: Source = Field(description="What is read.")
    columns: Columns = Field(
        validation_alias="schema",
        description="The columns of the table, as SQL text.",
        examples=["order_id BIGINT, amount DECIMAL(12,2), tags ARRAY<STRING>, at TIMESTAMP"],
    )
    target: Target = Field(description="What is written.")
    ledger: LedgerName | None = Field(
        default=None,
        description="The first name of a pipeline that was renamed. The ledger, the offsets table"
        " and the quarantine keep it.",
        examples=["orders"],
    )
    trigger: Trigger = TEN_SECONDS
    retry: RetryTimes = Retry()

    @model_validator(mode="after")
    def _fits_together(self) -> Pipeline:
        return checked(self, pipeline_faults(given(self)))

    @property
    def ledger_name(self) -> str:
        """Its name in the ledger, the offsets table and the quarantine: the first one it had."""
        return self.name if self.ledger is None else self.ledger

    @property
    def format(self) -> Format:
        """The registered format of its records."""
        return FORMATS.by_name[self.source.format]

    @property
    def key_form(self) -> KeyForm | None:
        """The registered form of its message keys; none without ``source.key``."""
        return None if self.source.key is None else FORMATS.keys[self.source.key]

    @property
    def shape(self) -> Shape:
        """The registered shape of its table."""
        return SHAPES.by_name[self.target.mode]

    @property
    def identity(self) -> dict[str, JsonValue]:
        """The settings that may not change under a table that has rows; JSON values.

        Topics are left out: a pipeline may come to read more of them.
        """
        return {
            "table": str(self.target.table),
            "mode": self.target.mode,
            "keys": list(self.target.keys),
            "order_by": list(self.target.order_by),
            "key": self.source.key,
        }


def _pipelines(value: Mapping[str, Pipeline]) -> Mapping[str, Pipeline]:
    if not value:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is empty", fix="add at least one pipeline"))
    return value


Pipelines = Annotated[Mapping[PipelineName, Pipeline], AfterValidator(_pipelines)]
