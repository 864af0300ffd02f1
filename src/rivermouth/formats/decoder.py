"""The decoder of a pipeline: what is common to all formats, around the registered one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import KeyPart, Pipeline
from rivermouth.registry.references import resolve


@dataclass(frozen=True)
class ValueDecoder:
    """What a format makes of the column ``value``, for the columns of a pipeline.

    ``parsed`` is evaluated once per record, whatever its type. ``field`` takes a column by its
    name out of the result; ``fault`` says by a code (``Format.reasons``) why the record is bad,
    and is null for a good one. It is not asked for a null or empty value.
    """

    parsed: SparkColumn
    field: Callable[[SparkColumn, str], SparkColumn]
    fault: Callable[[SparkColumn], SparkColumn]


def decoder(pipeline: Pipeline) -> Callable[[DataFrame], DataFrame]:
    """What decodes Kafka rows (key, value, topic, partition, offset, timestamp); see ``decoded``.

    The columns are built here, once: each is dozens of calls into the JVM, too dear per batch.
    """
    value: ValueDecoder = resolve(pipeline.format.decoder)(pipeline.columns)
    parsed = [
        F.struct("topic", "partition", "offset", "timestamp").alias("_kafka"),
        F.col("key"),
        F.col("value"),
        value.parsed.alias("parsed"),
        _nothing().alias("nothing"),
        *_message_key(pipeline),
    ]
    names = tuple(each.name for each in pipeline.columns)
    decoded = [
        _fields(value, names).alias("row"),
        *_key_columns(pipeline, value),
        F.col("_kafka"),
        _tombstone(pipeline).alias("tombstone"),
        _code(pipeline, value).alias("code"),
        F.col("key"),
        F.col("value"),
    ]
    return lambda raw: raw.select(parsed).select(decoded)


def _fields(value: ValueDecoder, names: Sequence[str]) -> SparkColumn:
    return F.struct(*(value.field(F.col("parsed"), name).alias(name) for name in names))


def _key_columns(pipeline: Pipeline, value: ValueDecoder) -> list[SparkColumn]:
    """The key of the row, or of the row that a tombstone names; none where there are no keys."""
    if not pipeline.target.keys:
        return []
    parts = (_key_part(value, each).alias(each.name) for each in pipeline.target.key_parts)
    of_row = F.struct(*parts)
    if pipeline.key_form is not None:
        of_row = F.when(_tombstone(pipeline), F.col("message_key")).otherwise(of_row)
    return [of_row.alias("key_columns")]


def _key_part(value: ValueDecoder, part: KeyPart) -> SparkColumn:
    column = value.field(F.col("parsed"), part.column)
    if part.width_us is None:
        return column
    us = F.unix_micros(column)
    # Null where the window begins before all times.
    return F.timestamp_micros(F.try_subtract(us, F.pmod(us, F.lit(part.width_us))))


def _tombstone(pipeline: Pipeline) -> SparkColumn:
    return F.col("value").isNull() if pipeline.key_form is not None else F.lit(False)


def _code(pipeline: Pipeline, value: ValueDecoder) -> SparkColumn:
    """Why a record is bad, or null; the first reason that applies."""
    parsed = F.col("parsed")
    nulls = [_key_part(value, each).isNull() for each in pipeline.target.key_parts]
    no_key = [F.when(each, F.lit("RM605")) for each in nulls]
    code = F.coalesce("nothing", value.fault(parsed), *no_key, *_no_place(pipeline, value))
    if pipeline.key_form is None:
        return code
    unnamed = [F.col("message_key").getField(name).isNull() for name in pipeline.target.keys]
    nameless = F.when(reduce(or_, unnamed, F.col("message_key").isNull()), "RM604")
    return F.when(_tombstone(pipeline), nameless).otherwise(code)


def _no_place(pipeline: Pipeline, value: ValueDecoder) -> list[SparkColumn]:
    """Why the record names no place to send it to, or null; none where it need not.

    It need not where own code makes the rows: then they name it, see ``write.transform.place``.
    """
    target, found = pipeline.target, []
    if pipeline.made_by:
        return []
    if target.topic_column is not None:
        topic = value.field(F.col("parsed"), target.topic_column)
        other = ~topic.isin(*(target.kafka or ()))
        found += [F.when(topic.isNull(), "RM607"), F.when(other, "RM608")]
    if target.partition_column is not None:
        number = value.field(F.col("parsed"), target.partition_column)
        found.append(F.when(number < 0, "RM609"))
    return found


def _nothing() -> SparkColumn:
    """Why there is nothing to decode, or null; found early, so that the value need not stay."""
    value = F.col("value")
    return F.when(value.isNull(), "RM601").when(F.length(value) == 0, "RM602")


def _message_key(pipeline: Pipeline) -> list[SparkColumn]:
    """The key columns that the message key of a tombstone names; none without ``source.key``."""
    if pipeline.key_form is None:
        return []
    types = {each.name: each for each in pipeline.columns}
    columns = [types[name] for name in pipeline.target.keys]
    key: SparkColumn = resolve(pipeline.key_form.decoder)(columns)
    return [key.alias("message_key")]
