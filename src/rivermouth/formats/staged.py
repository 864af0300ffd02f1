"""Which of Kafka's columns go to the Python workers that decode, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from rivermouth.config import Column, Pipeline
from rivermouth.formats.decoded import PARTITION, PLACE
from rivermouth.formats.in_arrow import HEADERS, KAFKA_COLUMNS, InArrow, Stage
from rivermouth.formats.in_task import in_task_of
from rivermouth.formats.joined import Joined
from rivermouth.formats.sieve import Sieve
from rivermouth.spark.address import quoted

Before = Callable[[DataFrame, Sieve | None], DataFrame]
"""Makes of Kafka's rows what the columns are evaluated over; a sieve takes bad records out."""


@dataclass(frozen=True)
class Asked:
    """What is asked of the decoded rows; see ``decoder`` and ``decoder_to_fold``.

    ``told``: all that tells of a bad record; else each of them is refused, or given to a sieve.
    """

    reads: Collection[str] | None
    headers: bool
    whole: bool
    ordered: bool = True
    told: bool = True

    def place(self, pipeline: Pipeline) -> tuple[str, ...]:
        """The columns of ``_kafka``."""
        return (*PLACE, *pipeline.source.metadata) if self.ordered else PARTITION

    def absent(self, pipeline: Pipeline) -> bool:
        """Whether ``absent`` comes back: else nobody asks why a record has no value."""
        return self.told or pipeline.key_form is not None

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

    With a sieve only where the format decodes in a task (``Format.in_task``).
    """
    if value is None:
        return lambda raw, sieve: raw
    key = None if isinstance(message_key, SparkColumn) else message_key
    names = {*asked.place(pipeline), *(HEADERS if asked.headers else ())}
    names |= {"key", "value"} if asked.told else set()
    names |= set() if key is message_key else {"key"}  # a Spark expression makes a key of it
    kept = {name: kind for name, kind in {**KAFKA_COLUMNS, **HEADERS}.items() if name in names}
    given = [*{**kept, "key": "", "value": ""}]
    columns, in_task = asked.parsed(pipeline), in_task_of(pipeline)
    stage = Stage(
        value,
        key,
        given=tuple(kept),
        columns=tuple(each.name for each in columns),
        whole=asked.whole,
        with_key="key" in pipeline.source.metadata,
        refuses=not asked.told,
        tombstones=pipeline.key_form is not None,
        code=in_task.code if in_task else "",
        keys=tuple(dict.fromkeys(each.column for each in pipeline.target.key_parts)),
    )
    made = {**kept, "parsed": _struct(columns)}
    made |= {"why": "STRING"} if asked.told else {}
    made |= {"absent": "STRING"} if asked.absent(pipeline) else {}
    if key is not None:
        made["message_key"] = _struct(keys_of(pipeline))
    ddl = ", ".join(f"{name} {kind}" for name, kind in made.items())

    def before(raw: DataFrame, sieve: Sieve | None) -> DataFrame:
        if sieve is None:
            return raw.select(*given).mapInArrow(Joined(stage), ddl)
        every = dict.fromkeys((*KAFKA_COLUMNS, *given))
        return raw.select(*every).mapInArrow(Joined(replace(stage, sieve=sieve)), ddl)

    return before


def _struct(columns: Sequence[Column]) -> str:
    return f"STRUCT<{', '.join(f'{quoted(each.name)}: {each.type}' for each in columns)}>"
