"""The decoder of a pipeline: what is common to all formats, around the registered one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import KeyPart, Pipeline
from rivermouth.config.registry import resolve
from rivermouth.formats.arrow import InArrow
from rivermouth.formats.tasks import Asked, Before, keys_of, settings_of, stage_of


@dataclass(frozen=True)
class ValueDecoder:
    """What a format makes of the column ``value``, for the columns of a pipeline.

    ``parsed`` is evaluated once per record, whatever its type. ``field`` takes a column by its
    name out of the result; ``fault`` says by a code (``Format.reasons``) why the record is bad,
    and is null for a good one. It is not asked for a null or empty value. Only ``parsed`` may read
    Kafka's columns ``key`` and ``value``: the others find them gone where nobody asks for them.

    ``in_arrow`` decodes before these columns are evaluated: they find its result in ``parsed``, and
    in ``why`` what is wrong with the record. None: they decode by themselves.
    """

    parsed: SparkColumn
    field: Callable[[SparkColumn, str], SparkColumn]
    fault: Callable[[SparkColumn], SparkColumn]
    in_arrow: InArrow | None = None


def decoder(
    pipeline: Pipeline, tasks: int | None = None, *, headers: bool = False, whole: bool = False
) -> Callable[[DataFrame], DataFrame]:
    """What decodes Kafka rows (key, value, topic, partition, offset, timestamp); see ``decoded``.

    They have ``headers``, too, where ``source.metadata`` asks for them. The rows come in no more
    parts than ``tasks``, if that is given. ``headers``: they have this column, and it stays.
    ``whole``: those that became rows of an append keep ``key`` and ``value``, too.

    The columns are built here, once: each is dozens of calls into the JVM, too dear per batch.
    """
    # Only the columns of an append ask nothing that makes a record bad after it was decoded.
    asks = pipeline.shape.keyed or pipeline.shape.sends
    return _decoder(pipeline, tasks, Asked(None, headers=headers, whole=whole or asks))


def decoder_to_fold(
    pipeline: Pipeline, tasks: int | None, reads: Collection[str] | None, *, ordered: bool
) -> Before:
    """The same for a fold: with less to carry from task to JVM. It refuses bad records.

    ``row`` has only the columns ``reads`` (None: all). ``_kafka`` is whole only where the fold asks
    for the order of records (``ordered``): else it names the topic and the partition. What tells of
    a bad record is left out: ``reason``, ``key`` and ``value``.
    """
    asked = Asked(reads, headers=False, whole=False, ordered=ordered, faults=False)
    return _decoder(pipeline, tasks, asked)


def _decoder(pipeline: Pipeline, tasks: int | None, asked: Asked) -> Before:
    headers = [F.col("headers")] if asked.headers else []
    known = pipeline.format
    value: ValueDecoder = resolve(known.decoder)(pipeline.columns, settings_of(pipeline))
    message_key = _message_key(pipeline)
    before = stage_of(pipeline, value.in_arrow, message_key, asked)
    key_and_value = [F.col("key"), F.col("value")] if asked.faults else []
    parsed = [
        F.struct(*asked.place(pipeline)).alias("_kafka"),
        *key_and_value,
        value.parsed.alias("parsed"),
        *_found(pipeline, value, asked),
        *_named(message_key),
        *headers,
    ]
    decoded = [
        _fields(value, [each.name for each in asked.row(pipeline)]).alias("row"),
        *_key_columns(pipeline, value),
        F.col("_kafka"),
        _tombstone(pipeline).alias("tombstone"),
        _code(pipeline, value).alias("code"),
        *([F.col("why").alias("reason")] if asked.faults else []),
        *key_and_value,
        *headers,
    ]

    def decode(raw: DataFrame) -> DataFrame:
        parts = raw if tasks is None else raw.coalesce(tasks)
        return before(parts).select(parsed).select(decoded)

    return decode


def _found(pipeline: Pipeline, value: ValueDecoder, asked: Asked) -> list[SparkColumn]:
    """What was found of a record: ``why`` it is bad, and ``nothing``, why it has no value."""
    why, nothing = F.lit(None).cast("string"), _nothing()
    if value.in_arrow is not None:
        why = F.col("why") if asked.faults else why
        nothing = F.col("absent") if asked.absent(pipeline) else F.lit(None).cast("string")
    return [why.alias("why"), nothing.alias("nothing")]


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
    # Not by the value itself: that of a good record may be left behind.
    absent = F.col("nothing").eqNullSafe("RM601")
    return absent if pipeline.key_form is not None else F.lit(False)


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

    It need not where own code makes the rows: then they name it, see ``write.transform``.
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


def _message_key(pipeline: Pipeline) -> SparkColumn | InArrow | None:
    """What gives the key columns that a message key names; None without ``source.key``."""
    form = pipeline.key_form
    if form is None:
        return None
    made: SparkColumn | InArrow = resolve(form.decoder)(keys_of(pipeline), settings_of(pipeline))
    return made


def _named(message_key: SparkColumn | InArrow | None) -> list[SparkColumn]:
    if message_key is None:
        return []
    column = message_key if isinstance(message_key, SparkColumn) else F.col("message_key")
    return [column.alias("message_key")]
