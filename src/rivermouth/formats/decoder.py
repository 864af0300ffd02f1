"""Decoded rows for Spark: the columns that are asked for, made in one pass of Python tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rivermouth.config import Column, Pipeline
from rivermouth.config.source import HEADERS, KAFKA_COLUMNS, PARTITION, PLACE
from rivermouth.formats.arrow import REFUSAL, Rebatched, spare_what_is_loaded
from rivermouth.formats.tasks import Decoder, decoder_of
from rivermouth.spark.tables import quoted

Decode = Callable[[DataFrame], DataFrame]
"""Makes decoded rows (``formats.tasks``) of Kafka's."""


def _as_they_come(rows: DataFrame) -> DataFrame:
    return rows


def decoder(
    pipeline: Pipeline,
    coalesced: Decode = _as_they_come,
    *,
    headers: bool = False,
    whole: bool = False,
) -> Decode:
    """What decodes Kafka rows (key, value, topic, partition, offset, timestamp).

    They have ``headers``, too, where ``source.metadata`` asks for them. ``coalesced``
    says in which parts they are decoded. ``headers``: they have this column, and it stays.
    ``whole``: those that became rows of an append keep ``key`` and ``value``, too.
    """
    # Only the columns of an append ask nothing that makes a record bad after it was decoded.
    asks = pipeline.shape.keyed or pipeline.shape.sends
    names = ("code", "reason", "key", "value", *(("headers",) if headers else ()))
    place = (*PLACE, *pipeline.source.metadata)
    return _by_tasks(pipeline, coalesced, _Asked(None, place, names, whole or asks, refuses=False))


def decoder_to_fold(
    pipeline: Pipeline, coalesced: Decode, reads: Collection[str] | None, *, ordered: bool
) -> Decode:
    """The same for a fold: with less to carry from task to JVM. Tasks fail at a bad record.

    ``row`` has only the columns ``reads`` (None: all). ``_kafka`` is whole only where the fold asks
    for the order of records (``ordered``): else it names the topic and the partition. What tells of
    a bad record is left out, but for ``code``, which is null.
    """
    place = (*PLACE, *pipeline.source.metadata) if ordered else PARTITION
    return _by_tasks(pipeline, coalesced, _Asked(reads, place, ("code",), whole=True, refuses=True))


@dataclass(frozen=True)
class _Asked:
    """What Spark is given: columns of ``row`` (None: all) and of ``_kafka``, and other columns.

    ``whole``: ``key`` and ``value`` stay as they are. Else they are null for a record whose value
    gave a row: nobody asks for the bytes of a good record that becomes a row of a table, and to
    carry them back to the JVM costs as much as to decode them. ``refuses``: a bad record fails the
    task by ``REFUSAL``.
    """

    reads: Collection[str] | None
    place: tuple[str, ...]
    more: tuple[str, ...]
    whole: bool
    refuses: bool


@dataclass(frozen=True)
class _Giving:
    """A function for ``DataFrame.mapInArrow``; ``row`` are the columns of ``row``."""

    decoder: Decoder
    row: tuple[str, ...]
    asked: _Asked

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from map(self._given, batches)
        spare_what_is_loaded()

    def _given(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        made, asked = self.decoder(raw), self.asked
        code = made.column("code")
        if asked.refuses and code.null_count < len(code):
            raise RuntimeError(REFUSAL)
        columns = {"row": _of(made.column("row"), self.row)}
        for name in self.decoder.of_keys:
            columns[name] = made.column(name)
        columns |= {"_kafka": _of(made.column("_kafka"), asked.place)}
        for name in ("tombstone", *asked.more):
            columns[name] = raw.column(name) if name == "headers" else made.column(name)
        if not asked.whole:
            without = made.column("row").is_null()
            for name in ("key", "value"):
                nothing = pa.scalar(None, columns[name].type)
                columns[name] = pc.if_else(without, columns[name], nothing)
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _of(rows: pa.StructArray, names: tuple[str, ...]) -> pa.StructArray:
    if len(names) == rows.type.num_fields:
        return rows
    fields = [rows.type.field(each) for each in names]
    return pa.StructArray.from_arrays(
        [rows.field(each) for each in names], fields=fields, mask=rows.is_null()
    )


def _by_tasks(pipeline: Pipeline, coalesced: Decode, asked: _Asked) -> Decode:
    row = [each for each in pipeline.columns if asked.reads is None or each.name in asked.reads]
    giving = _Giving(decoder_of(pipeline), tuple(each.name for each in row), asked)
    kafka = {**KAFKA_COLUMNS, **HEADERS}
    place = ", ".join(f"{each}: {kafka[each]}" for each in asked.place)
    made = {"row": _struct(row)}
    of_keys = {"key_columns": _struct(_key_columns(pipeline)), "kept": "ARRAY<STRING>"}
    made |= {each: of_keys[each] for each in giving.decoder.of_keys}
    made |= {"_kafka": f"STRUCT<{place}>", "tombstone": "BOOLEAN"}
    made |= {each: kafka.get(each, "STRING") for each in asked.more}
    ddl = ", ".join(f"{name} {kind}" for name, kind in made.items())
    given = [*KAFKA_COLUMNS]
    given += ["headers"] if pipeline.reads_headers else []

    def decode(raw: DataFrame) -> DataFrame:
        return coalesced(raw).select(*given).mapInArrow(Rebatched(giving), ddl)

    return decode


def _key_columns(pipeline: Pipeline) -> list[Column]:
    types = {each.name: each.type for each in pipeline.columns}
    return [Column(each.name, types[each.column]) for each in pipeline.target.key_parts]


def _struct(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type}' for each in columns)}>"
