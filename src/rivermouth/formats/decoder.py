"""The decoder of a pipeline: what is common to all formats, around the registered one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column, KeyPart, Pipeline
from rivermouth.formats.decoded import PLACE
from rivermouth.formats.in_arrow import HEADERS, KAFKA_COLUMNS, InArrow, Stage
from rivermouth.registry.references import resolve
from rivermouth.spark.address import quoted


@dataclass(frozen=True)
class ValueDecoder:
    """What a format makes of the column ``value``, for the columns of a pipeline.

    ``parsed`` is evaluated once per record, whatever its type. ``field`` takes a column by its
    name out of the result; ``fault`` says by a code (``Format.reasons``) why the record is bad,
    and is null for a good one. It is not asked for a null or empty value.

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
    return _decoder(pipeline, tasks, _Asked(None, headers=headers, whole=whole or asks))


def decoder_to_fold(
    pipeline: Pipeline, tasks: int | None, reads: Collection[str] | None
) -> Callable[[DataFrame], DataFrame]:
    """The same for a fold, which refuses bad records: with less to carry from task to JVM.

    ``row`` has only the columns ``reads`` (None: all). Who became a row keeps no ``key`` and
    ``value``.
    """
    return _decoder(pipeline, tasks, _Asked(reads, headers=False, whole=False))


@dataclass(frozen=True)
class _Asked:
    """What is asked of the decoded rows; see ``decoder`` and ``decoder_to_fold``."""

    reads: Collection[str] | None
    headers: bool
    whole: bool

    def row(self, pipeline: Pipeline) -> list[Column]:
        """The columns of ``row``."""
        return [e for e in pipeline.columns if self.reads is None or e.name in self.reads]

    def parsed(self, pipeline: Pipeline) -> list[Column]:
        """The same, and those that the key is made of."""
        of_key = {each.column for each in pipeline.target.key_parts}
        row = self.row(pipeline)
        return [each for each in pipeline.columns if each in row or each.name in of_key]


def _decoder(
    pipeline: Pipeline, tasks: int | None, asked: _Asked
) -> Callable[[DataFrame], DataFrame]:
    headers = [F.col("headers")] if asked.headers else []
    known = pipeline.format
    value: ValueDecoder = resolve(known.decoder)(
        pipeline.columns, *_settings(pipeline, known.version)
    )
    message_key = _message_key(pipeline)
    before = _stage(pipeline, value.in_arrow, message_key, asked)
    why = F.col("why") if value.in_arrow is not None else F.lit(None).cast("string")
    parsed = [
        F.struct(*PLACE, *pipeline.source.metadata).alias("_kafka"),
        F.col("key"),
        F.col("value"),
        value.parsed.alias("parsed"),
        why.alias("why"),
        (_nothing() if value.in_arrow is None else F.col("absent")).alias("nothing"),
        *_named(message_key),
        *headers,
    ]
    decoded = [
        _fields(value, [each.name for each in asked.row(pipeline)]).alias("row"),
        *_key_columns(pipeline, value),
        F.col("_kafka"),
        _tombstone(pipeline).alias("tombstone"),
        _code(pipeline, value).alias("code"),
        F.col("why").alias("reason"),
        F.col("key"),
        F.col("value"),
        *headers,
    ]

    def decode(raw: DataFrame) -> DataFrame:
        few = raw if tasks is None else raw.coalesce(tasks)
        return before(few).select(parsed).select(decoded)

    return decode


def _stage(
    pipeline: Pipeline,
    value: InArrow | None,
    message_key: SparkColumn | InArrow | None,
    asked: _Asked,
) -> Callable[[DataFrame], DataFrame]:
    """What is done before the columns are evaluated: nothing, or ``Stage``."""
    if value is None:
        return lambda raw: raw
    key = None if isinstance(message_key, SparkColumn) else message_key
    told = pipeline.source.metadata
    kept = {**KAFKA_COLUMNS, **(HEADERS if asked.headers or "headers" in told else {})}
    columns, with_key = asked.parsed(pipeline), "key" in told
    names = tuple(each.name for each in columns)
    stage = Stage(value, key, tuple(kept), names, whole=asked.whole, with_key=with_key)
    made = {**kept, "parsed": _struct(columns), "why": "STRING", "absent": "STRING"}
    if key is not None:
        made["message_key"] = _struct(_keys(pipeline))
    ddl = ", ".join(f"{name} {kind}" for name, kind in made.items())
    return lambda raw: raw.select(*kept).mapInArrow(stage, ddl)


def _struct(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type}' for each in columns)}>"


def settings_of(pipeline: Pipeline) -> Mapping[str, Any]:
    """The settings of ``source`` that decoders take, as the ledger names them."""
    told = pipeline.decoder
    return {each: told[each] for each in told.keys() - {"version", "key_version"}}


def _settings(pipeline: Pipeline, version: int) -> tuple[Mapping[str, Any], ...]:
    """What a decoder is told beside its columns: settings, from version 2 on."""
    return () if version == 1 else (settings_of(pipeline),)


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


def _keys(pipeline: Pipeline) -> list[Column]:
    types = {each.name: each for each in pipeline.columns}
    return [types[name] for name in pipeline.target.keys]


def _message_key(pipeline: Pipeline) -> SparkColumn | InArrow | None:
    """What gives the key columns that a message key names; None without ``source.key``."""
    form = pipeline.key_form
    if form is None:
        return None
    made: SparkColumn | InArrow = resolve(form.decoder)(
        _keys(pipeline), *_settings(pipeline, form.version)
    )
    return made


def _named(message_key: SparkColumn | InArrow | None) -> list[SparkColumn]:
    if message_key is None:
        return []
    column = message_key if isinstance(message_key, SparkColumn) else F.col("message_key")
    return [column.alias("message_key")]
