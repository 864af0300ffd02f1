"""The configuration as values: frozen, strict, complete.

The models hold what the file means. ``shape`` turns the file's own words (aliases,
``schema:`` text, options given in place) into these fields; ``loader`` reports problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from rivermouth.config.catalog import Catalog, offsets_table_faults, read_catalog
from rivermouth.config.columns import Column
from rivermouth.config.ddl import read_columns
from rivermouth.config.names import TableName, read_pipeline_name, read_table
from rivermouth.config.options import check_source_options, read_kafka_options
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.rules import Parts, pipeline_faults, shared_table_faults
from rivermouth.config.secret import Secret, SecretName, Secrets
from rivermouth.config.start import Start, read_start, whole
from rivermouth.config.values import (
    OnDataLoss,
    check_count,
    check_names,
    check_property_names,
    check_topics,
    read_choice,
    read_duration,
    read_name,
    read_version,
    read_warehouse,
)
from rivermouth.errors import ConfigError
from rivermouth.registry.formats import FORMATS, Format, KeyForm
from rivermouth.registry.shapes import SHAPES, Shape

JsonValue = str | list[str] | None


def _warehouse(value: object, info: ValidationInfo) -> Path | Catalog:
    if isinstance(value, Catalog):
        return value
    if isinstance(value, Mapping):
        return read_catalog(value)
    folder = info.context["folder"] if info.context else None
    return read_warehouse(value, folder)


Duration = Annotated[timedelta, BeforeValidator(read_duration)]
Names = Annotated[tuple[str, ...], AfterValidator(check_names)]
Topics = Annotated[tuple[str, ...], AfterValidator(check_topics)]
Table = Annotated[TableName, BeforeValidator(read_table)]
Columns = Annotated[tuple[Column, ...], BeforeValidator(read_columns)]
StartAt = Annotated[Start, BeforeValidator(read_start)]
ShapeName = Annotated[str, BeforeValidator(lambda value: read_name(SHAPES.by_name, value))]
FormatName = Annotated[str, BeforeValidator(lambda value: read_name(FORMATS.by_name, value))]
KeyFormName = Annotated[str, BeforeValidator(lambda value: read_name(FORMATS.keys, value))]
DataLossChoice = Annotated[
    OnDataLoss, BeforeValidator(lambda value: read_choice(OnDataLoss, value))
]
Count = Annotated[int, BeforeValidator(whole), AfterValidator(check_count)]
Properties = Annotated[Mapping[str, str], AfterValidator(check_property_names)]
SourceOptions = Annotated[Mapping[str, str], AfterValidator(check_source_options)]
KafkaOptions = Annotated[Mapping[str, str | Secret], BeforeValidator(read_kafka_options)]
Version = Annotated[Literal[1], BeforeValidator(read_version), BeforeValidator(whole)]
Warehouse = Annotated[Path | Catalog, BeforeValidator(_warehouse)]
PipelineName = Annotated[str, AfterValidator(read_pipeline_name)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class Kafka(_Model):
    """How to reach the cluster."""

    options: KafkaOptions
    """Client options, word for word; values under sensitive names are ``Secret``."""

    @property
    def bootstrap_servers(self) -> str:
        return str(self.options["bootstrap.servers"])

    @property
    def secret_names(self) -> list[SecretName]:
        """The secrets that the options refer to, each once, in order."""
        held = (each for each in self.options.values() if isinstance(each, Secret))
        return sorted({name for each in held for name in each.names})

    def revealed(self, secrets: Secrets) -> dict[str, str]:
        """The options with their secrets in the clear: only for the moment of use.

        ``secrets`` is asked for each one that the file only names; what it raises is passed on.
        """
        return {
            name: value.reveal(secrets) if isinstance(value, Secret) else value
            for name, value in self.options.items()
        }


class Source(_Model):
    """What a pipeline reads."""

    topics: Topics
    format: FormatName
    start: StartAt = Start()
    key: KeyFormName | None = None
    max_offsets_per_trigger: Count = 500_000
    on_data_loss: DataLossChoice = OnDataLoss.HALT
    options: SourceOptions = Field(default_factory=dict)
    """Options of this source alone; each name starts with ``kafka.``."""


class Target(_Model):
    """What a pipeline writes."""

    table: Table
    mode: ShapeName = "append"
    keys: Names = ()
    order_by: Names = ()
    properties: Properties = Field(default_factory=dict)


class Pipeline(_Model):
    """One way from topics to a table."""

    name: PipelineName
    source: Source
    columns: Columns
    target: Target
    trigger: Duration = timedelta(seconds=10)

    @model_validator(mode="after")
    def _fits_together(self) -> Pipeline:
        return _without(self, pipeline_faults(parts_of(self)))

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
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is empty", fix="describe at least one"))
    return value


Pipelines = Annotated[Mapping[PipelineName, Pipeline], AfterValidator(_pipelines)]


class Config(_Model):
    """A whole configuration file."""

    version: Version
    kafka: Kafka
    warehouse: Warehouse
    trigger: Duration = timedelta(seconds=10)
    pipelines: Pipelines
    path: Path

    @property
    def folder(self) -> Path:
        """The folder of the tables. Raises ConfigError where they lie in a catalog."""
        if isinstance(self.warehouse, Path):
            return self.warehouse
        where = f"{self.path}: the tables lie in the catalog {self.warehouse.catalog}"
        raise ConfigError((f"{where}, and this works in a folder — {_IN_A_CATALOG}",))

    def writers(self, table: TableName) -> list[Pipeline]:
        """The pipelines whose target it is, in the order of the file."""
        return [each for each in self.pipelines.values() if each.target.table == table]

    @model_validator(mode="after")
    def _pipelines_go_together(self) -> Config:
        parts = {name: parts_of(pipeline) for name, pipeline in self.pipelines.items()}
        tables = {name: pipeline.target.table for name, pipeline in self.pipelines.items()}
        ours = offsets_table_faults(self.warehouse, tables)
        return _without(self, [*shared_table_faults(parts), *ours])


_IN_A_CATALOG = "there the jobs of the bundle do it: databricks bundle run, see docs/databricks.md"
Model = TypeVar("Model", bound=_Model)


def _without(model: Model, faults: Iterable[Fault]) -> Model:
    found = tuple(faults)
    if found:
        raise Refused(*found)
    return model


def parts_of(pipeline: Pipeline) -> Parts:
    """The settings of a pipeline that rules look at."""
    source, target = pipeline.source, pipeline.target
    return Parts(
        columns=pipeline.columns,
        topics=source.topics,
        start=source.start,
        key=pipeline.key_form,
        table=target.table,
        shape=pipeline.shape,
        keys=target.keys,
        order_by=target.order_by,
        properties=target.properties,
    )
