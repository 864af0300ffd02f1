"""Decoded rows, and what makes them of Kafka's rows in a task.

A decoded row has these columns:

- ``row`` STRUCT of the configured columns, null for a tombstone or a bad record; for an event that
  deletes a row, what it tells of that
- ``key_columns`` STRUCT of the key columns (keyed shapes only): of the row or the message key
- ``kept`` ARRAY of STRING, only where events may leave out values: the columns that stay as they
  are; null: none
- ``_kafka`` STRUCT<topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP>, and after
  these what ``source.metadata`` asks for: ``key`` and ``headers``, as Kafka has them
- ``tombstone`` BOOLEAN, never null
- ``code`` STRING, null for a good record, ``skipped`` for one that makes no row, else why it goes
  to quarantine (RM6xx)
- ``reason`` STRING, what is wrong with a record that cannot be decoded
- ``key`` and ``value`` BINARY, as Kafka has them; of good records of an append null, if not asked
  for
- ``headers`` ARRAY of STRUCT<key STRING, value BINARY>, as Kafka has them, null where there are
  none; only where they are sent on (``forward_headers``)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column, KeyPart, Pipeline
from rivermouth.config.each import WHOLE
from rivermouth.config.encoding import Fraction, Framing
from rivermouth.config.paths import reading
from rivermouth.config.registry import resolve
from rivermouth.config.source import PLACE
from rivermouth.config.values import OnEmpty, Tombstones
from rivermouth.formats.arrow import (
    NO_KEY,
    NO_MESSAGE_KEY,
    NO_VALUE,
    NULL,
    SKIPPED,
    Decoded,
    InArrow,
    absent,
    coded,
)
from rivermouth.formats.events import Events
from rivermouth.formats.framing import Unframed, by_header
from rivermouth.formats.projected import AsField, Elements, Projected
from rivermouth.formats.wired import Wired


@dataclass(frozen=True)
class Routes:
    """What a record must hold that is sent to topics as it is: ``topic`` is a column with one of
    ``topics``, ``partition`` one with a number that is not negative. None: there is no such column.
    """

    topic: str | None
    topics: tuple[str, ...]
    partition: str | None

    def codes(self, rows: pa.StructArray) -> list[pa.StringArray]:
        """Why rows cannot be sent, null for those that can."""
        found = []
        if self.topic is not None:
            topic = rows.field(self.topic)
            known = pc.is_in(topic, value_set=pa.array(self.topics, pa.string()))
            found += [coded(topic.is_null(), "RM607"), coded(pc.invert(known), "RM608")]
        if self.partition is not None:
            negative = pc.less(rows.field(self.partition), 0).fill_null(False)
            found.append(coded(negative, "RM609"))
        return found


@dataclass(frozen=True)
class Decoder:
    """Makes decoded rows of Kafka's rows; it can be pickled.

    ``kafka`` are the columns of these rows that stand in ``_kafka``, in this order. Of those that
    are ``numbered`` (``value``, ``key``) a header has the number of the schema. ``keys`` are the
    parts of the key of a row. ``message_key`` decodes the keys of tombstones; None: they delete
    nothing, and ``tombstones`` says what becomes of them. ``required`` are the columns that are NOT
    NULL.
    """

    values: InArrow
    kafka: tuple[str, ...] = PLACE
    keys: tuple[KeyPart, ...] = ()
    message_key: InArrow | None = None
    routes: Routes | None = None
    required: tuple[str, ...] = ()
    tombstones: Tombstones = Tombstones.QUARANTINE
    keeps: bool = False
    numbered: tuple[str, ...] = ()

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Decoded rows; ``key_columns`` where there are keys, and without headers."""
        value = raw.column("value")
        found = self._decoded("value", self.values, value, raw)
        deletes = self.message_key is not None and bool(value.null_count)
        tombstone = value.is_null() if deletes else pa.repeat(False, len(value))
        nothing = absent(value, None if deletes else _WITHOUT.get(self.tombstones))
        rows = found.rows
        if self.tombstones is Tombstones.ROW and value.null_count:
            rows = of_nulls(rows, value.is_null())
        gone = found.deletes
        unfilled = self._unfilled(rows, found)
        code = first_of(nothing, found.codes, coded(unfilled.is_valid(), NULL))
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in self.kafka], self.kafka)
        columns = {"row": rows}
        if self.keys:
            keys = [part_of(rows.field(each.column), each.width_us) for each in self.keys]
            there = rows.is_valid()
            code = first_of(code, *(without(each, there) for each in keys))
            if deletes:
                keys, code = self._named(raw, tombstone, keys, code)
            names = [each.name for each in self.keys]
            columns["key_columns"] = pa.StructArray.from_arrays(keys, names)
        if gone is not None:
            tombstone = pc.or_(tombstone, gone)
        if self.keeps:
            columns["kept"] = found.kept
        if self.routes is not None:
            code = first_of(code, *self.routes.codes(rows))
        columns |= {"_kafka": kafka, "tombstone": tombstone, "code": code}
        reason = first_of(found.reasons, unfilled)
        columns |= {"reason": reason, "key": raw.column("key"), "value": value}
        return pa.RecordBatch.from_pydict(columns)

    def _decoded(self, what: str, inner: InArrow, given: pa.Array, raw: pa.RecordBatch) -> Decoded:
        if what in self.numbered:
            return by_header(what, inner, given, raw.column("headers"))
        return inner.decode(given)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it reads beside key and value, which may be among them."""
        return (*self.kafka, "headers") if self.numbered else self.kafka

    @property
    def of_keys(self) -> tuple[str, ...]:
        """The columns that only decoded rows by key have."""
        return (*(("key_columns",) if self.keys else ()), *(("kept",) if self.keeps else ()))

    def _unfilled(self, rows: pa.StructArray, found: Decoded) -> pa.StringArray:
        """What a row lacks of what is required; null for all others.

        What goes lacks nothing.
        """
        there, lacking = rows.is_valid(), pa.nulls(len(rows), pa.string())
        if found.deletes is not None:
            there = pc.and_not(there, found.deletes)
        for each in self.required:
            column = rows.field(each)
            if column.null_count:
                lacks = pc.and_(there, column.is_null())
                lacking = first_of(lacking, coded(lacks, f"{each} is null"))
        return lacking

    def _named(
        self,
        raw: pa.RecordBatch,
        tombstone: pa.BooleanArray,
        keys: list[pa.Array],
        code: pa.StringArray,
    ) -> tuple[list[pa.Array], pa.StringArray]:
        """The keys and the codes, those of tombstones by what their message keys name."""
        assert self.message_key is not None
        key = raw.column("key")
        given = pc.if_else(tombstone, key, pa.scalar(None, key.type))
        named = self._decoded("key", self.message_key, given, raw).rows.flatten()
        for each in named:
            nameless = pc.and_(tombstone, each.is_null())
            code = pc.if_else(nameless, NO_MESSAGE_KEY, code)
        both = zip(named, keys, strict=True)
        return [pc.if_else(tombstone, each, key) for each, key in both], code


_WITHOUT = {Tombstones.QUARANTINE: NO_VALUE, Tombstones.SKIP: SKIPPED}


def of_nulls(rows: pa.StructArray, these: pa.BooleanArray) -> pa.StructArray:
    """The same rows; ``these``, of which there are none, are rows of nulls."""
    absent = pc.and_not(rows.is_null(), these)
    return pa.StructArray.from_arrays(rows.flatten(), fields=[*rows.type], mask=absent)


def first_of(codes: pa.StringArray, *others: pa.StringArray) -> pa.StringArray:
    """The first code of each record; null where there is none."""
    for each in others:
        if each.null_count < len(each):
            codes = pc.coalesce(codes, each) if codes.null_count < len(codes) else each
    return codes


def without(key: pa.Array, there: pa.BooleanArray) -> pa.StringArray:
    """``NO_KEY`` where a record is ``there`` without its ``key``."""
    if not key.null_count:
        return pa.nulls(len(key), pa.string())
    return coded(pc.and_(there, key.is_null()), NO_KEY)


def part_of(column: pa.Array, width_us: int | None) -> pa.Array:
    """A part of the key; null where the column is, and where a window begins before all times."""
    if width_us is None:
        return column
    us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    begins = us - np.mod(us, width_us)  # of the sign of the divisor: 0 or more
    none = (begins > us) | column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(begins, mask=none).cast(column.type)


def decoder_of(pipeline: Pipeline) -> Decoder:
    """What decodes the records of a pipeline."""
    target = pipeline.target
    routes = Routes(target.topic_column, tuple(target.kafka or ()), target.partition_column)
    values: InArrow = resolve(pipeline.format.decoder)(pipeline.reading, of_values(pipeline))
    if pipeline.each == WHOLE:
        values = AsField(values)
    if pipeline.framing is Framing.CONFLUENT and pipeline.format.schema_text is None:
        values = Unframed(values)
    source = pipeline.source
    if pipeline.events is not None and source.envelope is not None:
        nulls = source.on_empty is OnEmpty.NULL
        values = Events.of(
            values,
            pipeline.written,
            source.envelope,
            pipeline.events,
            pipeline.kept,
            pipeline.target.order_by,
            empty=nulls,
            removes=pipeline.events_delete,
        )
    elif pipeline.fields:
        values = Projected.of(values, pipeline.written, pipeline.fields)
    if pipeline.each is not None and source.on_empty is not OnEmpty.NULL:
        values = Elements(values)
    if pipeline.wires:
        cut = source.timestamps.fraction is Fraction.CUT
        values = Wired.of(values, pipeline.columns, pipeline.wires, cut=cut)
    return Decoder(
        values,
        (*PLACE, *pipeline.source.metadata),
        target.key_parts if pipeline.shape.keyed else (),
        _key_decoder(pipeline),
        None if pipeline.made_by or not (routes.topic or routes.partition) else routes,
        tuple(each.name for each in pipeline.columns if each.required),
        pipeline.tombstones,
        bool(pipeline.kept),
        pipeline.named_schemas if pipeline.framing is Framing.HEADER else (),
    )


def _key_decoder(pipeline: Pipeline) -> InArrow | None:
    """What decodes the keys of tombstones; None: they delete nothing."""
    if pipeline.key_form is None:
        return None
    fields, columns = pipeline.message_key_fields, keys_of(pipeline)
    read = resolve(pipeline.key_form.decoder)(reading(columns, fields), of_keys(pipeline))
    found: InArrow = Projected.of(read, columns, fields) if fields else read
    return found


_NOT_OF_VALUES = {
    "version",
    "key",
    "not_null",
    "from",
    "tombstones",
    "envelope",
    "on_delete",
    "as",
    "each",
}


def of_values(pipeline: Pipeline) -> Mapping[str, Any]:
    """The settings of the decoder of values, as the ledger names them, and ``schemas``: the texts
    of those that are known, by their numbers (``formats.framing.Schemas``).
    """
    named = pipeline.decoder
    its = {each: named[each] for each in named.keys() - _NOT_OF_VALUES}
    return {**its, "schemas": pipeline.schemas}


def of_keys(pipeline: Pipeline) -> Mapping[str, Any]:
    """The settings of the decoder of message keys: values of columns are read alike in both."""
    named = pipeline.decoder
    its = {each: named[each] for each in named.keys() & {"lenient", "timestamps"}}
    return {**its, "schemas": pipeline.schemas}


def keys_of(pipeline: Pipeline) -> Sequence[Column]:
    """The columns that the keys of the table name."""
    types = {each.name: each for each in pipeline.columns}
    return [types[name] for name in pipeline.target.keys]
