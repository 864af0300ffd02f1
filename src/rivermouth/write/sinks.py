"""Sinks: where rows are sent that go to no table: a topic, or a function of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Protocol, TypeVar, cast

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from rivermouth.config import Column as ConfiguredColumn
from rivermouth.config import Pipeline, Target
from rivermouth.config.registry import own
from rivermouth.config.sinks import ID_HEADER
from rivermouth.errors import MissingPackage, NotSent
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.errors import FAULTS, said
from rivermouth.write.landing import Site


class Sink(Protocol):
    """Takes the good rows of a batch. ``name`` says in messages what it is.

    ``every_batch``: it is also given the batches in which no row is good.
    """

    @property
    def name(self) -> str: ...

    @property
    def every_batch(self) -> bool: ...

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """Return once the sink has acknowledged every row of a decoded batch.

        Raises where it has not: then some rows may be there and others not.
        """


def in_order(rows: DataFrame) -> DataFrame:
    """The rows of each Kafka partition in one task, in their order."""
    kafka = F.col("_kafka")
    topic, number, offset = (kafka.getField(each) for each in ("topic", "partition", "offset"))
    return rows.repartition(topic, number).sortWithinPartitions(topic, number, offset)


_FAILED = "RM507: the function failed:"
_SAID = re.compile(rf"{_FAILED} (.+)")


class FunctionSink:
    """Calls ``function(rows, batch, partition_id)``. See ``Sink``.

    ``rows`` are dicts of the columns and ``_kafka``. All good records of a Kafka partition are in
    one call, in their order; a call may have several Kafka partitions, one after the other. It is
    called for each batch, so that it can tell whether one is missing.
    """

    every_batch = True

    def __init__(self, site: Site) -> None:
        self.name = self._reference = site.pipeline.target.foreach_partition or ""
        own(self._reference)  # what cannot be imported is said before anything is read

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """See ``Sink.send``."""
        in_task = partial(call, self._reference, Batch.of(plan))
        try:
            good.select("row.*", "_kafka").foreachPartition(in_task)
        except FAULTS as fault:
            failure = _SAID.search(said(fault))
            if failure is None:
                raise
            raise NotSent(
                f"{self._reference} failed in entry {plan.sequence}",
                where=plan.draft.pipeline,
                expected=f"all of {', '.join(map(str, plan.draft.ranges))}",
                found=failure[1],
                remedy="Correct the function and run again: it gets all of these records again",
            ) from fault


def call(reference: str, batch: Batch, rows: Iterator[Row]) -> None:
    """Call the function in a task. Raises ImportError where a module is missing there."""
    task = TaskContext.get()
    number = task.partitionId() if task is not None else 0
    try:
        own(reference)((each.asDict(recursive=True) for each in rows), batch, number)
    except ImportError:
        raise
    except MissingPackage as fault:
        raise ImportError(fault.found) from fault
    except Exception as fault:
        raise RuntimeError(f"{_FAILED} {type(fault).__name__}: {fault}") from fault


# To the microsecond: by itself Spark writes milliseconds.
_TIMES = {
    "TIMESTAMP": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "TIMESTAMP_NTZ": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": _TIMES["TIMESTAMP"],
    "timestampNTZFormat": _TIMES["TIMESTAMP_NTZ"],
}
_ACKNOWLEDGED = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.allow.auto.create.topics": "false",
}


class KafkaSink:
    """Sends each row as JSON, under its own key or that of its record. See ``Sink``."""

    every_batch = False

    def __init__(self, site: Site) -> None:
        target = site.pipeline.target
        self.name = ", ".join(target.kafka or ())
        self._options = _acknowledged(site.kafka)
        self._in_files = not site.jvm
        # Built once: each is many calls into the JVM, too dear per batch.
        self._columns = (
            key_of(site.pipeline).alias("key"),
            value_of().alias("value"),
            headers_of(site.pipeline).alias("headers"),
            _topic(target).alias("topic"),
            *_partition(target),
        )

    def send(self, good: DataFrame, plan: CommitPlan) -> None:
        """See ``Sink.send``."""
        del plan
        if self._in_files:  # where Spark reads the parts of a large file at once
            good = in_order(good)
        good.select(*self._columns).write.format("kafka").options(**self._options).save()


def _acknowledged(kafka: Mapping[str, str]) -> dict[str, str]:
    """The options, but all replicas acknowledge each record, whatever they say of that.

    Spark compares the names without their case, and the last one counts.
    """
    others = {name: text for name, text in kafka.items() if name.lower() not in _ACKNOWLEDGED}
    return {**others, **_ACKNOWLEDGED}


def value_of() -> Column:
    """The value to send: the row as JSON."""
    return F.to_json("row", _AS_JSON)


def key_of(pipeline: Pipeline) -> Column:
    """The key to send: the one that was read, the text of a column, or several as JSON."""
    names = pipeline.target.message_key
    if not names:
        return F.col("key")
    columns = {each.name: each for each in pipeline.row_columns}
    return _made_of([columns[each] for each in names])


def _made_of(columns: Sequence[ConfiguredColumn]) -> Column:
    values = [F.col("row").getField(each.name) for each in columns]
    if len(columns) > 1:
        named = (value.alias(each.name) for each, value in zip(columns, values, strict=True))
        return F.to_json(F.struct(*named), _AS_JSON).cast("binary")
    [only], [value] = columns, values
    return _text(only, value)


def _text(column: ConfiguredColumn, value: Column) -> Column:
    """The text of a value in UTF-8, as in the JSON but without quotes; bytes as they are."""
    if column.kind in _TIMES:
        value = F.date_format(value, _TIMES[column.kind])
    return value if column.kind == "BINARY" else value.cast("string").cast("binary")


def headers_of(pipeline: Pipeline) -> Column:
    """The headers to send: those that were read, those of columns, and last the id."""
    own = F.array(_identifier(pipeline.ledger_name))
    names = pipeline.target.header_columns
    if names:
        columns = {each.name: each for each in pipeline.row_columns}
        made = F.array(*(_header(columns[each]) for each in names))
        own = F.concat(F.filter(made, lambda each: each.getField("value").isNotNull()), own)
    if not pipeline.target.forward_headers:
        return own
    # Ours must be the only one: by it consumers drop repeats.
    others = F.filter("headers", lambda each: each.getField("key") != ID_HEADER)
    return F.when(F.col("headers").isNull(), own).otherwise(F.concat(others, own))


def _header(column: ConfiguredColumn) -> Column:
    value = _text(column, F.col("row").getField(column.name))
    return F.struct(F.lit(column.name).alias("key"), value.alias("value"))


def _topic(target: Target) -> Column:
    """The only topic, or the one that the row names: no other one passes the checks before."""
    if target.topic_column is None:
        [only] = target.kafka or ()
        return F.lit(only)
    return F.col("row").getField(target.topic_column)


def _partition(target: Target) -> list[Column]:
    """The partition that the row names, null for the one of its key; none where the key decides."""
    if target.partition_column is None:
        return []
    return [F.col("row").getField(target.partition_column).cast("int").alias("partition")]


def _identifier(pipeline: str) -> Column:
    kafka = F.col("_kafka")
    parts = (kafka.getField(each).cast("string") for each in ("topic", "partition", "offset"))
    text = F.concat_ws("/", F.lit(pipeline), *parts)
    return F.struct(F.lit(ID_HEADER).alias("key"), text.cast("binary").alias("value"))


Connection = TypeVar("Connection")

_known: dict[tuple[int, Hashable], object] = {}
_making = Lock()


def pooled(key: Hashable, make: Callable[[], Connection]) -> Connection:
    """What ``make`` returned in this process under this key; it is called once.

    For a connection in a function of ``target.foreach_partition``: Spark keeps the processes that
    call it, from batch to batch. A connection that has broken is the function's to replace.
    """
    here = (os.getpid(), key)  # a process that was forked must not use its parent's connection
    with _making:
        if here not in _known:
            _known[here] = make()
        return cast("Connection", _known[here])
