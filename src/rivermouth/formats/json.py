"""JSON records: the value by the configured schema, the message key of a tombstone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column, Pipeline

_CORRUPT = "_rm_corrupt"


def decoder(pipeline: Pipeline) -> Callable[[DataFrame], DataFrame]:
    """What decodes Kafka rows (key, value, topic, partition, offset, timestamp); see ``decode``.

    The columns are built here, once: each is dozens of calls into the JVM, too dear per batch.
    """
    parsed = [
        F.struct("topic", "partition", "offset", "timestamp").alias("_kafka"),
        F.col("key"),
        F.col("value"),
        from_json(F.col("value"), pipeline.columns).alias("parsed"),
        _nothing().alias("nothing"),
        *_message_key(pipeline),
    ]
    decoded = [
        _fields(tuple(each.name for each in pipeline.columns)).alias("row"),
        *_key_columns(pipeline),
        F.col("_kafka"),
        _tombstone(pipeline).alias("tombstone"),
        _code(pipeline).alias("code"),
        F.col("key"),
        F.col("value"),
    ]
    return lambda raw: raw.select(parsed).select(decoded)


def _fields(names: Sequence[str]) -> SparkColumn:
    return F.struct(*(F.col("parsed").getField(name).alias(name) for name in names))


def _key_columns(pipeline: Pipeline) -> list[SparkColumn]:
    """The key of the row, or of the row that a tombstone names; none for an append."""
    if not pipeline.target.keys:
        return []
    of_row = _fields(pipeline.target.keys)
    if pipeline.source.key is not None:
        of_row = F.when(_tombstone(pipeline), F.col("message_key")).otherwise(of_row)
    return [of_row.alias("key_columns")]


def from_json(value: SparkColumn, columns: Sequence[Column]) -> SparkColumn:
    """A struct of ``columns`` and the text of a corrupt record; null where nothing is there."""
    ddl = ", ".join(f"`{each.name}` {each.type}" for each in columns)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(value.cast("string"), f"{ddl}, {_CORRUPT} STRING", options)


def _tombstone(pipeline: Pipeline) -> SparkColumn:
    return F.col("value").isNull() if pipeline.source.key else F.lit(False)


def _code(pipeline: Pipeline) -> SparkColumn:
    """Why a record is bad, or null; the first reason that applies."""
    parsed = F.col("parsed")
    rules = [
        (parsed.isNull() | parsed.getField(_CORRUPT).isNotNull(), "RM603"),
        *((parsed.getField(name).isNull(), "RM605") for name in pipeline.target.keys),
    ]
    reasons = (F.when(condition, F.lit(reason)) for condition, reason in rules)
    code = F.coalesce("nothing", *reasons)
    if pipeline.source.key is None:
        return code
    unnamed = [F.col("message_key").getField(name).isNull() for name in pipeline.target.keys]
    nameless = F.when(reduce(or_, unnamed, F.col("message_key").isNull()), "RM604")
    return F.when(_tombstone(pipeline), nameless).otherwise(code)


def _nothing() -> SparkColumn:
    """Why there is nothing to decode, or null; found early, so that the value need not stay."""
    value = F.col("value")
    return F.when(value.isNull(), "RM601").when(F.length(value) == 0, "RM602")


def _message_key(pipeline: Pipeline) -> list[SparkColumn]:
    """The key columns that the message key of a tombstone names; none without ``source.key``."""
    if pipeline.source.key is None:
        return []
    types = {each.name: each for each in pipeline.columns}
    columns = [types[name] for name in pipeline.target.keys]
    return [_parse_key(pipeline.source.key, columns).alias("message_key")]


def _parse_key(form: str, columns: Sequence[Column]) -> SparkColumn:
    key = F.col("key")
    if form == "json":
        parsed = from_json(key, columns)
        whole = F.struct(*(parsed.getField(each.name).alias(each.name) for each in columns))
        return F.when(parsed.getField(_CORRUPT).isNull(), whole)
    only = columns[0]
    if form == "string":
        return F.struct(key.cast("string").try_cast(only.type).alias(only.name))
    # Kafka's LongSerializer: eight bytes, big-endian, two's complement; conv to base -10 signs it.
    number = F.when(F.length(key) == 8, F.conv(F.hex(key), 16, -10).cast("bigint"))
    return F.struct(number.try_cast(only.type).alias(only.name))
