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

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from rivermouth.config import Column, Pipeline
from rivermouth.config.registry import resolve
from rivermouth.config.source import HEADERS, KAFKA_COLUMNS, PARTITION, PLACE
from rivermouth.formats.arrow import (
    REFUSING,
    InArrow,
    Rebatched,
    SideOutput,
    Stage,
    absent,
    with_code,
)
from rivermouth.spark.tables import quoted


@dataclass(frozen=True)
class InTask:
    """What a task makes of Kafka's rows; ``code`` is that of values which ``values`` finds bad.

    ``kafka`` are the columns of these rows that stand in ``_kafka``, in this order.
    """

    values: InArrow
    code: str
    kafka: tuple[str, ...] = PLACE

    def __call__(self, raw: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of ``decoded`` that an append or totals need, and ``reason``: what its code
        does not tell, or null.
        """
        value = raw.column("value")
        found = self.values.decode(value)
        kafka = pa.StructArray.from_arrays([raw.column(each) for each in self.kafka], self.kafka)
        columns = {
            "row": found.rows,
            "_kafka": kafka,
            "code": with_code(absent(value), found.reasons, self.code),
            "reason": found.reasons,
            "key": raw.column("key"),
            "value": value,
        }
        return pa.RecordBatch.from_pydict(columns)


def in_task_of(pipeline: Pipeline) -> InTask | None:
    """What decodes the pipeline's values in a task; None where Spark has to decode them."""
    if pipeline.format.in_task is None:
        return None
    made: InTask = resolve(pipeline.format.in_task)(pipeline)
    return made


Before = Callable[[DataFrame, SideOutput | None], DataFrame]
"""Makes of Kafka's rows what the columns are evaluated over; bad records go to a side output."""


@dataclass(frozen=True)
class Asked:
    """What is asked of the decoded rows; see ``decoder`` and ``decoder_to_fold``.

    ``faults``: all that tells of a bad record; else each of them is refused, or diverted.
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
    """What is done before the columns are evaluated: nothing, or ``Stage``.

    With a side output only where the format decodes in a task (``Format.in_task``).
    """
    if value is None:
        return lambda raw, side_output: raw
    key = None if isinstance(message_key, SparkColumn) else message_key
    names = {*asked.place(pipeline), *(HEADERS if asked.headers else ())}
    names |= {"key", "value"} if asked.faults else set()
    names |= set() if key is message_key else {"key"}  # a Spark expression makes a key of it
    carried = {name: kind for name, kind in {**KAFKA_COLUMNS, **HEADERS}.items() if name in names}
    given = [*{**carried, "key": "", "value": ""}]
    columns, in_task = asked.parsed(pipeline), in_task_of(pipeline)
    stage = Stage(
        value,
        key,
        given=tuple(carried),
        columns=tuple(each.name for each in columns),
        whole=asked.whole,
        with_key="key" in pipeline.source.metadata,
        side_output=None if asked.faults else REFUSING,
        tombstones=pipeline.key_form is not None,
        code=in_task.code if in_task else "",
        keys=tuple(dict.fromkeys(each.column for each in pipeline.target.key_parts)),
    )
    made = {**carried, "parsed": _struct(columns)}
    made |= {"why": "STRING"} if asked.faults else {}
    made |= {"absent": "STRING"} if asked.absent(pipeline) else {}
    if key is not None:
        made["message_key"] = _struct(keys_of(pipeline))
    ddl = ", ".join(f"{name} {kind}" for name, kind in made.items())

    def before(raw: DataFrame, side_output: SideOutput | None) -> DataFrame:
        if side_output is None:
            return raw.select(*given).mapInArrow(Rebatched(stage), ddl)
        every = dict.fromkeys((*KAFKA_COLUMNS, *given))
        return raw.select(*every).mapInArrow(
            Rebatched(replace(stage, side_output=side_output)), ddl
        )

    return before


def _struct(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type}' for each in columns)}>"
