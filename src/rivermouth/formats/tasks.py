"""Decoded rows, and the tasks that make them of Kafka's rows.

A decoded row has these columns:

- ``row`` STRUCT of the configured columns, null for a tombstone or a bad record
- ``key_columns`` STRUCT of the key columns (keyed shapes only): of the row or the message key
- ``_kafka`` STRUCT<topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP>, and after
  these what ``source.metadata`` asks for: ``key`` and ``headers``, as Kafka has them
- ``tombstone`` BOOLEAN, never null
- ``code`` STRING, null for a good record, else why it goes to quarantine (RM6xx)
- ``reason`` STRING, what is wrong with a record that cannot be decoded, where its format tells it
- ``key`` and ``value`` BINARY, as Kafka has them; of good records of an append null, if not asked
  for
- ``headers`` ARRAY of STRUCT<key STRING, value BINARY>, as Kafka has them, null where there are
  none; only where they are sent on (``forward_headers``)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from rivermouth.config import Column, KeyPart, Pipeline
from rivermouth.config.registry import KeyForm, resolve
from rivermouth.config.source import HEADERS, KAFKA_COLUMNS, PARTITION, PLACE
from rivermouth.formats.arrow import (
    NO_MESSAGE_KEY,
    InArrow,
    Rebatched,
    Stage,
    absent,
    with_code,
    without_key,
)
from rivermouth.spark.tables import quoted


@dataclass(frozen=True)
class InTask:
    """What a task makes of Kafka's rows; ``code`` is that of values which ``values`` finds bad.

    ``kafka`` are the columns of these rows that stand in ``_kafka``, in this order. ``keys`` are
    the parts of the key of a row. ``message_key`` decodes the keys of tombstones; None: a null
    value is bad.
    """

    values: InArrow
    code: str
    kafka: tuple[str, ...] = PLACE
    keys: tuple[KeyPart, ...] = ()
    message_key: InArrow | None = None

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """Decoded rows without headers; ``key_columns`` and ``tombstone`` where there are keys."""
        value = raw.column("value")
        found, nothing = self.values.decode(value), absent(value)
        tombstone = None if self.message_key is None else value.is_null()
        if tombstone is not None:
            nothing = pc.if_else(tombstone, pa.scalar(None, pa.string()), nothing)
        code = with_code(nothing, found.reasons, self.code)
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in self.kafka], self.kafka)
        columns = {"row": found.rows, "_kafka": kafka}
        if self.keys:
            keys = [part_of(found.rows.field(each.column), each.width_us) for each in self.keys]
            for each in keys:
                code = without_key(code, each, found.rows.is_valid())
            if tombstone is not None and tombstone.true_count:
                keys, code = self._named(raw.column("key"), tombstone, keys, code)
            names = [each.name for each in self.keys]
            columns["key_columns"] = pa.StructArray.from_arrays(keys, names)
            columns["tombstone"] = pa.repeat(False, len(value)) if tombstone is None else tombstone
        columns |= {"code": code, "reason": found.reasons, "key": raw.column("key"), "value": value}
        return pa.RecordBatch.from_pydict(columns)

    def _named(
        self, key: pa.Array, tombstone: pa.BooleanArray, keys: list[pa.Array], code: pa.StringArray
    ) -> tuple[list[pa.Array], pa.StringArray]:
        """The keys and the codes, those of tombstones by what their message keys name."""
        assert self.message_key is not None
        given = pc.if_else(tombstone, key, pa.scalar(None, key.type))
        named = self.message_key.decode(given).rows.flatten()
        for each in named:
            nameless = pc.and_(tombstone, each.is_null())
            code = pc.if_else(nameless, NO_MESSAGE_KEY, code)
        both = zip(named, keys, strict=True)
        return [pc.if_else(tombstone, each, key) for each, key in both], code


def part_of(column: pa.Array, width_us: int | None) -> pa.Array:
    """A part of the key; null where the column is, and where a window begins before all times."""
    if width_us is None:
        return column
    us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    begins = us - np.mod(us, width_us)  # of the sign of the divisor: 0 or more
    none = (begins > us) | column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(begins, mask=none).cast(column.type)


def in_task_of(pipeline: Pipeline, *, keyed: bool = False) -> InTask | None:
    """What decodes the pipeline's values in a task; None where Spark has to decode them.

    ``keyed``: the keys of rows and tombstones, too.
    """
    if pipeline.format.in_task is None:
        return None
    made: InTask = resolve(pipeline.format.in_task)(pipeline)
    if not keyed:
        return made
    made, form = replace(made, keys=pipeline.target.key_parts), pipeline.key_form
    if form is None:
        return made
    message_key = key_in_task(pipeline, form)
    return None if message_key is None else replace(made, message_key=message_key)


def key_in_task(pipeline: Pipeline, form: KeyForm) -> InArrow | None:
    """What decodes message keys of this form in a task; None where Spark has to."""
    if form.in_task is None:
        return None
    found: InArrow | None = resolve(form.in_task)(keys_of(pipeline), settings_of(pipeline))
    return found


def settings_of(pipeline: Pipeline) -> Mapping[str, Any]:
    """The settings of ``source`` that decoders take, as the ledger names them."""
    named = pipeline.decoder
    return {each: named[each] for each in named.keys() - {"version", "key_version"}}


Before = Callable[[DataFrame], DataFrame]
"""Makes of Kafka's rows what the columns are evaluated over."""


@dataclass(frozen=True)
class Asked:
    """What is asked of the decoded rows; see ``decoder`` and ``decoder_to_fold``.

    ``faults``: all that tells of a bad record; else each of them is refused.
    """

    reads: Collection[str] | None
    headers: bool
    whole: bool
    ordered: bool = True
    faults: bool = True

    def place(self, pipeline: Pipeline) -> tuple[str, ...]:
        """The columns of ``_kafka``."""
        return (*PLACE, *pipeline.source.metadata) if self.ordered else PARTITION

    def absent(self, pipeline: Pipeline) -> bool:
        """Whether ``absent`` comes back: else nobody asks why a record has no value."""
        return self.faults or pipeline.key_form is not None

    def row(self, pipeline: Pipeline) -> list[Column]:
        """The columns of ``row``."""
        return [e for e in pipeline.columns if self.reads is None or e.name in self.reads]

    def parsed(self, pipeline: Pipeline) -> list[Column]:
        """The same, and those that the key is made of."""
        of_key = {each.column for each in pipeline.target.key_parts}
        row = self.row(pipeline)
        return [each for each in pipeline.columns if each in row or each.name in of_key]


def keys_of(pipeline: Pipeline) -> list[Column]:
    """The columns that the keys of the table name."""
    types = {each.name: each for each in pipeline.columns}
    return [types[name] for name in pipeline.target.keys]


def stage_of(
    pipeline: Pipeline,
    value: InArrow | None,
    message_key: SparkColumn | InArrow | None,
    asked: Asked,
) -> Before:
    """What is done before the columns are evaluated: nothing, or ``Stage``."""
    if value is None:
        return lambda raw: raw
    key = None if isinstance(message_key, SparkColumn) else message_key
    names = {*asked.place(pipeline), *(HEADERS if asked.headers else ())}
    names |= {"key", "value"} if asked.faults else set()
    names |= set() if key is message_key else {"key"}  # a Spark expression makes a key of it
    carried = {name: kind for name, kind in {**KAFKA_COLUMNS, **HEADERS}.items() if name in names}
    given = [*{**carried, "key": "", "value": ""}]
    columns = asked.parsed(pipeline)
    stage = Stage(
        value,
        key,
        given=tuple(carried),
        columns=tuple(each.name for each in columns),
        whole=asked.whole,
        with_key="key" in pipeline.source.metadata,
        refuses=not asked.faults,
        tombstones=pipeline.key_form is not None,
        keys=tuple(dict.fromkeys(each.column for each in pipeline.target.key_parts)),
    )
    made = {**carried, "parsed": _struct(columns)}
    made |= {"why": "STRING"} if asked.faults else {}
    made |= {"absent": "STRING"} if asked.absent(pipeline) else {}
    if key is not None:
        made["message_key"] = _struct(keys_of(pipeline))
    ddl = ", ".join(f"{name} {kind}" for name, kind in made.items())

    return lambda raw: raw.select(*given).mapInArrow(Rebatched(stage), ddl)


def _struct(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type}' for each in columns)}>"
