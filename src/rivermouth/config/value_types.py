"""The types of settings: how each is read from a plain value, and how it is written.

A ``BeforeValidator`` takes what the file may say, an ``AfterValidator`` checks what was read.
Both raise ``Refused`` with our own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from rivermouth.config.bucket import Bucket, read_storage
from rivermouth.config.columns import Column, read_columns
from rivermouth.config.formats import FORMATS
from rivermouth.config.names import (
    IDENTIFIER,
    LONGEST_GROUP,
    PIPELINE,
    Catalog,
    TableName,
    read_catalog,
    read_group,
    read_ledger_name,
    read_pipeline_name,
    read_table,
)
from rivermouth.config.options import (
    check_source_options,
    check_spark_names,
    read_kafka_options,
    read_registry_options,
)
from rivermouth.config.registry import SHAPES, Shape
from rivermouth.config.secret import REFERENCE as SECRET
from rivermouth.config.secret import Secret, whole
from rivermouth.config.settings import NAMES, Schema, Written, one_of, or_reference
from rivermouth.config.start import SCHEMA, Start, read_start
from rivermouth.config.topics import SCHEMA as TOPICS
from rivermouth.config.topics import Topics, read_topics
from rivermouth.config.totals import Measure, check_keys, read_metrics
from rivermouth.config.values import (
    Commit,
    OnDataLoss,
    OnDelete,
    OnEmpty,
    OnMissingTime,
    OnSchemaChange,
    Tombstones,
    check_count,
    check_names,
    check_property_names,
    check_tasks,
    read_choice,
    read_days,
    read_duration,
    read_flag,
    read_name,
    read_true,
    read_version,
    read_warehouse,
)

_TEXT: Schema = {"type": "string"}
_OPTION: Schema = {"type": ["string", "number", "boolean"]}
_OPTIONS: Schema = {"type": "object", "additionalProperties": _OPTION}
_SERVERS: Schema = {
    "description": "The brokers: host:port, several with commas.",
    "examples": ["localhost:9092"],
    **_TEXT,
    "not": {"pattern": SECRET},
}


def _pattern(pattern: str) -> Schema:
    return or_reference({"type": "string", "pattern": pattern})


def _kafka() -> Schema:
    option = {
        "description": "An option of the Kafka client. A secret is written as a reference.",
        "examples": ["${secret:scope/key}", "${env:NAME}"],
        **_OPTION,
    }
    return {
        "type": "object",
        "properties": {"bootstrap.servers": _SERVERS},
        "required": ["bootstrap.servers"],
        "additionalProperties": option,
    }


def _registry() -> Schema:
    url = {
        "description": "Where it is: several addresses with commas.",
        "examples": ["http://localhost:8081"],
        **_TEXT,
        "not": {"pattern": SECRET},
    }
    option = {
        "description": "An option of the client. A secret is written as a reference.",
        "examples": ["${secret:scope/key}", "${env:NAME}"],
        **_OPTION,
    }
    return {
        "type": "object",
        "properties": {"url": url},
        "required": ["url"],
        "additionalProperties": option,
    }


def _storage() -> Schema:
    option = {
        "description": "An option of the client. A secret is written as a reference.",
        "examples": ["http://localhost:9000", "${secret:scope/key}", "${env:NAME}"],
        **_OPTION,
    }
    return {"type": "object", "additionalProperties": option}


def _read_warehouse(value: object, info: ValidationInfo) -> Path | Bucket | Catalog:
    if isinstance(value, Catalog):
        return value
    if isinstance(value, Mapping):
        return read_catalog(value)
    folder = info.context["folder"] if info.context else None
    return read_warehouse(value, folder)


def refused_by(takes: Callable[[Shape], bool]) -> str:
    """In which modes a setting has no meaning."""
    refusing = [f"`{name}`" for name, each in SHAPES.by_name.items() if not takes(each)]
    return f"Refused for mode {' or '.join(refusing)}." if refusing else ""


Version = Annotated[
    Literal[1],
    BeforeValidator(read_version),
    BeforeValidator(whole),
    Written(lambda: or_reference({"const": 1}), "`1`"),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    Written(lambda: _pattern("^[0-9]{1,9}(ms|s|m|h)$"), "duration"),
]
Retention = Annotated[
    timedelta,
    BeforeValidator(read_days),
    Written(lambda: _pattern("^[1-9][0-9]{0,4}d$"), "days"),
]
OffsetsRetention = Annotated[
    Retention | None,
    Field(
        description="How long a run keeps rows of the offsets table, in days. The newest row of"
        " each partition stays, and so do rows with bad records. If it is not given, all stay.",
        examples=["400d"],
    ),
]
_COUNTED = Written(lambda: or_reference({"type": "integer", "minimum": 1}), "whole number")
Count = Annotated[int, BeforeValidator(whole), AfterValidator(check_count), _COUNTED]
TaskCount = Annotated[int, BeforeValidator(whole), AfterValidator(check_tasks), _COUNTED]
Always = Annotated[
    Literal[True],
    BeforeValidator(read_true),
    Written(lambda: or_reference({"const": True}), "`true`"),
]
Flag = Annotated[
    bool,
    BeforeValidator(read_flag),
    Written(lambda: or_reference({"type": "boolean"}), "`true` or `false`"),
]
_COLUMNS = "list of columns"
ColumnNames = Annotated[
    tuple[str, ...], AfterValidator(check_names), Written(lambda: NAMES, _COLUMNS)
]
TopicsRead = Annotated[
    Topics, BeforeValidator(read_topics), Written(lambda: TOPICS, "list, or mapping")
]
Table = Annotated[
    TableName,
    BeforeValidator(read_table),
    Written(lambda: _pattern(rf"^{IDENTIFIER}\.{IDENTIFIER}$"), "`schema.table`"),
]
Columns = Annotated[
    tuple[Column, ...], BeforeValidator(read_columns), Written(lambda: _TEXT, "text")
]
StartAt = Annotated[Start, BeforeValidator(read_start), Written(lambda: SCHEMA, "see below")]
FormatName = Annotated[
    str,
    BeforeValidator(lambda value: read_name(FORMATS.by_name, value)),
    Written(one_of(lambda: FORMATS.by_name)),
]
KeyFormName = Annotated[
    str,
    BeforeValidator(lambda value: read_name(FORMATS.keys, value)),
    Written(one_of(lambda: FORMATS.keys), more=lambda: refused_by(lambda shape: shape.deletes)),
]
DataLossChoice = Annotated[
    OnDataLoss,
    BeforeValidator(lambda value: read_choice(OnDataLoss, value)),
    Written(one_of(lambda: [each.value for each in OnDataLoss])),
]
EmptyChoice = Annotated[
    OnEmpty,
    # YAML's own null is meant, too.
    BeforeValidator(lambda value: read_choice(OnEmpty, "null" if value is None else value)),
    Written(one_of(lambda: [each.value for each in OnEmpty])),
]
DeletionChoice = Annotated[
    OnDelete,
    BeforeValidator(lambda value: read_choice(OnDelete, value)),
    Written(one_of(lambda: [each.value for each in OnDelete])),
]
TombstonesChoice = Annotated[
    Tombstones,
    BeforeValidator(lambda value: read_choice(Tombstones, value)),
    Written(one_of(lambda: [each.value for each in Tombstones])),
]
MissingTimeChoice = Annotated[
    OnMissingTime,
    BeforeValidator(lambda value: read_choice(OnMissingTime, value)),
    Written(one_of(lambda: [each.value for each in OnMissingTime])),
]
Properties = Annotated[
    Mapping[str, str],
    AfterValidator(check_property_names),
    Written(lambda: _OPTIONS, "mapping", verbatim=True),
]
SparkConf = Annotated[
    Mapping[str, str],
    AfterValidator(check_spark_names),
    Written(lambda: _OPTIONS, "mapping", verbatim=True),
]
SourceOptions = Annotated[
    Mapping[str, str],
    AfterValidator(check_source_options),
    Written(lambda: _OPTIONS, "text", verbatim=True),
]
KafkaOptions = Annotated[
    Mapping[str, str | Secret],
    BeforeValidator(read_kafka_options),
    Written(_kafka, "mapping", verbatim=True),
]
RegistryOptions = Annotated[
    Mapping[str, str | Secret],
    BeforeValidator(read_registry_options),
    Written(_registry, "mapping", verbatim=True),
]
Folder = Annotated[
    Path,
    WithJsonSchema(
        {
            "description": "A folder; a relative one begins at the folder of this file.",
            "examples": ["./lake"],
            **_TEXT,
        }
    ),
]
Address = Annotated[
    Bucket,
    WithJsonSchema(
        {
            "description": "The address of a bucket of an object store, and a prefix in it.",
            "examples": ["s3://bucket/lake"],
            "pattern": "^(s3a?|az|abfss?|gs)://",
            **_TEXT,
        }
    ),
]
StorageOptions = Annotated[
    Mapping[str, str | Secret],
    BeforeValidator(read_storage),
    Written(_storage, "mapping", verbatim=True),
]
Warehouse = Annotated[
    Folder | Address | Catalog,
    BeforeValidator(_read_warehouse),
    Written(word="folder, address or mapping"),
]
LedgerName = Annotated[
    str,
    BeforeValidator(read_ledger_name),
    WithJsonSchema({"type": "string", "pattern": f"^{PIPELINE}$"}),
    Written(word="name"),
]
GroupName = Annotated[
    str,
    BeforeValidator(read_group),
    Written(
        lambda: or_reference({"type": "string", "minLength": 1, "maxLength": LONGEST_GROUP}), "text"
    ),
]
PipelineName = Annotated[
    str,
    AfterValidator(read_pipeline_name),
    WithJsonSchema({"type": "string", "pattern": f"^{PIPELINE}$"}),
]


def _needs_keys() -> str:
    keyed = [f"`{name}`" for name, each in SHAPES.by_name.items() if each.keyed]
    return f"Required for mode {' or '.join(keyed)}."


def _summaries() -> str:
    return " ".join(f"`{name}`: {each.summary}." for name, each in SHAPES.by_name.items())


_METRICS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
Keys = Annotated[
    tuple[str, ...],
    AfterValidator(check_names),
    AfterValidator(check_keys),
    Written(
        lambda: NAMES,
        _COLUMNS,
        more=lambda: f"{_needs_keys()} {refused_by(lambda shape: shape.keyed)}",
    ),
]
OrderBy = Annotated[
    tuple[str, ...],
    AfterValidator(check_names),
    Written(lambda: NAMES, _COLUMNS, more=lambda: refused_by(lambda shape: shape.ordered)),
]
Metrics = Annotated[
    tuple[Measure, ...],
    BeforeValidator(read_metrics),
    Written(
        lambda: _METRICS,
        "mapping",
        more=lambda: refused_by(lambda shape: shape.totals),
        verbatim=True,
    ),
]
CommitChoice = Annotated[
    Commit,
    BeforeValidator(lambda value: read_choice(Commit, value)),
    Written(one_of(lambda: [each.value for each in Commit])),
    Field(
        description="How rows get into the table, and bad records into quarantine."
        " `auto`: tasks write data files and the driver commits them, where the table is in a"
        " folder and asks for nothing that only Spark's writer knows; elsewhere through Spark."
        " `spark`: always through Spark. It also says how entries that bring no rows are committed,"
        " in each mode. The bad records of a pipeline that sends always go through Spark. See"
        " [tables](tables.md#how-rows-are-added).",
    ),
]
SchemaChange = Annotated[
    OnSchemaChange,
    BeforeValidator(lambda value: read_choice(OnSchemaChange, value)),
    Written(one_of(lambda: [each.value for each in OnSchemaChange])),
    Field(
        description="What happens where `schema` has got a column since the newest entry. `apply`:"
        " it is added to the table, null in the rows that are there. `halt`: the pipeline stops,"
        " with the statement that adds it. All else that differs stops it in any case. See"
        " [tables](tables.md#a-schema-that-grows).",
    ),
]
ShapeName = Annotated[
    str,
    BeforeValidator(lambda value: read_name(SHAPES.by_name, value)),
    Written(one_of(lambda: SHAPES.by_name), more=_summaries),
]
