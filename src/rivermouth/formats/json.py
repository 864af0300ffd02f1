"""JSON records and JSON message keys, as ``docs/json.md`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as F

from rivermouth.config import Column, Pipeline
from rivermouth.config.source import PLACE
from rivermouth.formats.decoder import ValueDecoder
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings
from rivermouth.formats.tasks import InTask, settings_of


def value(columns: Sequence[Column], settings: Mapping[str, Any]) -> ValueDecoder:
    """What decodes values; RM603 for what is not one JSON object that fits the columns."""
    return ValueDecoder(
        parsed=F.col("parsed"),
        field=lambda parsed, name: parsed.getField(name),
        fault=lambda parsed: F.when(F.col("why").isNotNull(), F.lit("RM603")),
        in_arrow=key(columns, settings),
    )


def key(columns: Sequence[Column], settings: Mapping[str, Any]) -> StrictJson:
    """What decodes message keys that are JSON objects."""
    times = settings.get("timestamps", {})
    lenient = frozenset(settings.get("lenient", ()))
    chosen = JsonSettings(times.get("unit"), times.get("fraction") == "cut", lenient)
    return StrictJson.of(columns, chosen)


def in_task(pipeline: Pipeline) -> InTask:
    """What decodes values in the task that writes them."""
    values = key(pipeline.columns, settings_of(pipeline))
    return InTask(values, "RM603", (*PLACE, *pipeline.source.metadata))
