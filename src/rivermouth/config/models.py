"""The configuration as values: frozen, strict, complete.

The fields of these models are the one list of settings, see ``written``. ``shape`` turns the
file's own words (aliases, options given in place) into them; ``loader`` reports problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, model_validator

from rivermouth.config.catalog import offsets_table_faults
from rivermouth.config.kafka import Kafka
from rivermouth.config.names import TableName
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.retry import Retry
from rivermouth.config.rules import pipeline_faults, shared_table_faults
from rivermouth.config.sound import given
from rivermouth.config.spark_conf import catalog_faults
from rivermouth.config.start import Start
from rivermouth.config.value_types import (
    Always,
    Columns,
    Count,
    DataLossChoice,
    Duration,
    FormatName,
    KeyFormName,
    Keys,
    OffsetsRetention,
    OrderBy,
    PipelineName,
    Properties,
    ShapeName,
    SourceOptions,
    SparkConf,
    StartAt,
    Table,
    Topics,
    Version,
    Warehouse,
)
from rivermouth.config.values import OnDataLoss
from rivermouth.config.written import InPlace, Model, SparkName, Unwritten
from rivermouth.errors import ConfigError
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
RetryTimes = Annotated[
    Retry, Field(description="How long a run tries again what may pass by itself.")
]
_TEN_SECONDS = timedelta(seconds=10)


class Source(Model):
    """What a pipeline reads."""

    topics: Annotated[Topics, SparkName("subscribe", listed=True)] = Field(
        description="The topics to read. Patterns are not supported.",
        examples=[["orders"], ["orders", "payments"]],
    )
    format: FormatName = Field(description="How the values of records are encoded.")
    start: Annotated[StartAt, SparkName("startingOffsets")] = Field(
        default=Start(),
        description="Where to start if the table has no ledger yet. Later it has no effect.",
        examples=["earliest", "latest", {"orders": {"0": 100, "1": "latest"}}],
    )
    key: KeyFormName | None = Field(
        default=None,
        description="How the message key holds the columns of `keys`. If it is given, a record"
        " without a value deletes the row of its key.",
    )
    max_offsets_per_trigger: Annotated[Count, SparkName("maxOffsetsPerTrigger")] = Field(
        default=500_000, description="The most offsets in one batch."
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
    trigger: Trigger = _TEN_SECONDS
    retry: RetryTimes = Retry()

    @model_validator(mode="after")
    def _fits_together(self) -> Pipeline:
        return _without(self, pipeline_faults(given(self)))

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


class Config(Model):
    """A whole configuration file: one cluster, one warehouse, and pipelines by name."""

    version: Version = Field(description="The version of this format.")
    kafka: Kafka = Field(
        description="Options of the Kafka client, word for word and without a prefix."
    )
    warehouse: Warehouse = Field(
        description="Where the tables are: in a folder, or on Databricks in a catalog.",
        examples=["./lake", {"catalog": "main"}],
    )
    trigger: Trigger = _TEN_SECONDS
    retry: RetryTimes = Retry()
    offsets_retention: OffsetsRetention = None
    spark: SparkConf = Field(
        default={},
        description="Settings of the Spark session that a command starts on this machine, word"
        " for word.",
        examples=[{"spark.driver.memory": "8g"}],
    )
    pipelines: Pipelines = Field(
        description="The pipelines by name, at least one.",
        json_schema_extra={"minProperties": 1, "additionalProperties": False},
    )
    path: Annotated[Path, Unwritten()]

    @property
    def folder(self) -> Path:
        """The folder of the tables. Raises ConfigError where they are in a catalog."""
        if isinstance(self.warehouse, Path):
            return self.warehouse
        where = f"{self.path}: the tables are in the catalog {self.warehouse.catalog}"
        raise ConfigError((f"{where}, and this command needs a folder — {_IN_A_CATALOG}",))

    def writers(self, table: TableName) -> list[Pipeline]:
        """The pipelines whose target it is, in the order of the file."""
        return [each for each in self.pipelines.values() if each.target.table == table]

    @model_validator(mode="after")
    def _pipelines_go_together(self) -> Config:
        tables = {name: pipeline.target.table for name, pipeline in self.pipelines.items()}
        ours = offsets_table_faults(self.warehouse, tables)
        found = {name: given(pipeline) for name, pipeline in self.pipelines.items()}
        spark = catalog_faults(self.warehouse, self.spark)
        return _without(self, [*shared_table_faults(found), *ours, *spark])


_IN_A_CATALOG = "use the jobs of the bundle: databricks bundle run, see docs/databricks.md"
Section = TypeVar("Section", bound=Model)


def _without(model: Section, faults: Iterable[Fault]) -> Section:
    found = tuple(faults)
    if found:
        raise Refused(*found)
    return model
