"""JSON records and JSON message keys, by the configured columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from rivermouth.config import Column, Pipeline
from rivermouth.formats.decoder import ValueDecoder
from rivermouth.formats.in_task import InTask
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.settings import JsonSettings

_CORRUPT = "_rm_corrupt"


def value(columns: Sequence[Column]) -> ValueDecoder:
    """What decodes values; RM603 for what is not one JSON object that fits the columns."""
    return ValueDecoder(
        parsed=from_json(F.col("value"), columns),
        field=lambda parsed, name: parsed.getField(name),
        fault=lambda parsed: F.when(
            parsed.isNull() | parsed.getField(_CORRUPT).isNotNull(), F.lit("RM603")
        ),
    )


def in_task(pipeline: Pipeline) -> InTask:
    """What decodes values in the task that writes them, as ``docs/json.md`` says."""
    return InTask(StrictJson.of(pipeline.columns, JsonSettings()), "RM603")


def key(columns: Sequence[Column]) -> SparkColumn:
    """The key columns from a message key that is a JSON object; null where it is none."""
    parsed = from_json(F.col("key"), columns)
    whole = F.struct(*(parsed.getField(each.name).alias(each.name) for each in columns))
    return F.when(parsed.getField(_CORRUPT).isNull(), whole)


def from_json(value: SparkColumn, columns: Sequence[Column]) -> SparkColumn:
    """A struct of ``columns`` and the text of a corrupt record; null where nothing is there."""
    ddl = ", ".join(f"`{each.name}` {each.type}" for each in columns)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(value.cast("string"), f"{ddl}, {_CORRUPT} STRING", options)
