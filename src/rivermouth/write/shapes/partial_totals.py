"""Totals in two steps: tasks fold the records that they decode, and Spark what they return.

So a row for each key goes back to Spark, and not one for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column, KeyPart, Measure, Pipeline
from rivermouth.config.source import KAFKA_COLUMNS, PARTITION
from rivermouth.formats.arrow import (
    REFUSING,
    OpenSideOutput,
    Rebatched,
    SideOutput,
    spare_what_is_loaded,
    without_key,
)
from rivermouth.formats.tasks import in_task_of
from rivermouth.spark.tables import quoted
from rivermouth.write.rows import RECORDS, Partly

LOW_BITS = 32
_RECORDS = 1 << 18
_BYTES = 1 << 26
"""So much is kept before it is folded: a task may have any number of records."""
_ROWS = 10_000


@dataclass(frozen=True)
class TotalsInTask:
    """A function for ``DataFrame.mapInArrow``: from Kafka's rows to one for each key.

    ``decode`` makes decoded rows of Kafka's, as ``formats.tasks``. A row that comes back has
    ``_kafka`` STRUCT<topic, partition>, ``records``, of how many it is made, ``key_columns``, a
    STRUCT of the ``keys``, and a column for each part of each of the ``metrics``, see ``parts_of``.
    A key may come several times. A bad record, or one without a key, goes to the ``side_output``,
    which may ask for all of Kafka's columns.
    """

    decode: Callable[[pa.RecordBatch], pa.RecordBatch]
    keys: tuple[KeyPart, ...]
    metrics: tuple[Measure, ...]
    side_output: SideOutput = REFUSING

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        records = size = 0
        with self.side_output.opened() as side_output:
            for batch in batches:
                waiting.append(self._measured(batch, side_output))
                records, size = records + len(waiting[-1]), size + waiting[-1].nbytes
                if records >= _RECORDS or size >= _BYTES:
                    yield from self._folded(waiting)
                    waiting, records, size = [], 0, 0
            if waiting:
                yield from self._folded(waiting)
        spare_what_is_loaded()

    def _measured(self, raw: pa.RecordBatch, side_output: OpenSideOutput) -> pa.RecordBatch:
        """What is grouped of each good record, and by what."""
        decoded = self.decode(raw)
        code, row, kafka = (decoded.column(each) for each in ("code", "row", "_kafka"))
        keys = [_key(row.field(each.column), each.width_us) for each in self.keys]
        for each in keys:
            code = without_key(code, each, row.is_valid())
        good = side_output.good(raw, code, decoded.column("reason"))
        if good is not None:
            code, row, kafka = (each.filter(good) for each in (code, row, kafka))
            keys = [each.filter(good) for each in keys]
        # Copied: Kafka's columns share the memory of all values of their batch.
        every = pa.array(np.arange(len(code)))
        columns = {each: kafka.field(each).take(every) for each in PARTITION}
        columns |= {f"key_{n}": each for n, each in enumerate(keys)}
        for number, metric in enumerate(self.metrics):
            if metric.column is not None:
                columns |= _inputs(number, metric.function, row.field(metric.column))
        return pa.RecordBatch.from_pydict(columns)

    def _folded(self, waiting: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by = [*PARTITION, *(f"key_{number}" for number in range(len(self.keys)))]
        table = pa.Table.from_batches(waiting)
        parts = [(name, _how(name)) for name in table.column_names if name not in by]
        # All rows are counted without a column: in each of them one may be null.
        found = table.group_by(by, use_threads=False).aggregate([([], "count_all"), *parts])
        for batch in found.combine_chunks().to_batches(max_chunksize=_ROWS):
            yield self._returned(batch, parts)

    def _returned(self, found: pa.RecordBatch, parts: Sequence[tuple[str, str]]) -> pa.RecordBatch:
        place = [found.column(each) for each in PARTITION]
        keys = [found.column(f"key_{number}") for number in range(len(self.keys))]
        columns = {
            "_kafka": pa.StructArray.from_arrays(place, PARTITION),
            "records": found.column("count_all"),
            "key_columns": pa.StructArray.from_arrays(keys, [each.name for each in self.keys]),
            **{name: found.column(f"{name}_{how}") for name, how in parts},
        }
        return pa.RecordBatch.from_pydict(columns)


def parts_of(number: int, metric: Measure, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """The columns that come back of the metric with this number.

    A sum of whole numbers comes in two, of the bits above ``LOW_BITS`` and of those below: each of
    these fits into 64 bits, whatever the order. A count of all records is ``records``.
    """
    if metric.column is None:
        return ()
    if metric.function == "sum" and columns[metric.column].integral:
        return (f"high_{number}", f"low_{number}")
    return (f"{metric.function}_{number}",)


def _inputs(number: int, function: str, column: pa.Array) -> dict[str, pa.Array]:
    """What is aggregated of a column, by the names of ``parts_of``."""
    if function != "sum":
        return {f"{function}_{number}": column}
    if pa.types.is_decimal(column.type):
        # Sums need more digits than the column has; Arrow before 20 keeps their number.
        return {f"sum_{number}": column.cast(pa.decimal128(38, column.type.scale))}
    whole = column.cast(pa.int64())
    high = pc.shift_right(whole, pa.scalar(LOW_BITS, pa.int64()))
    low = pc.bit_wise_and(whole, pa.scalar((1 << LOW_BITS) - 1, pa.int64()))
    return {f"high_{number}": high, f"low_{number}": low}


def _how(part: str) -> str:
    """The aggregate that makes a part, by its name."""
    kind = part.partition("_")[0]
    return "sum" if kind in ("high", "low") else kind


def _key(column: pa.Array, width_us: int | None) -> pa.Array:
    """A part of the key; null where the column is, and where a window begins before all times."""
    if width_us is None:
        return column
    us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    begins = us - np.mod(us, width_us)  # of the sign of the divisor: 0 or more
    none = (begins > us) | column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(begins, mask=none).cast(column.type)


FITS = "fits"
"""The column of a fold: whether all sums of the batch fit into their columns."""
_ADDS_UP = 28
"""The most digits of a decimal whose sums tasks make: 10 billion of them still fit into 38."""
_ORDERED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL")
"""Kinds that Arrow and Spark surely put into the same order. Of rounded numbers they may not."""
_KEYS = (*_ORDERED, "STRING", "BINARY", "BOOLEAN")


def partly(pipeline: Pipeline) -> Partly | None:
    """Both steps of the totals; None where Spark has to make them alone.

    That is where the format cannot be decoded in a task, where own code makes the rows, and where
    Arrow does not surely make the same of a column.
    """
    columns = {each.name: each for each in pipeline.columns}
    decode = in_task_of(pipeline)
    parts, measures = pipeline.target.key_parts, pipeline.target.metrics
    if decode is None or pipeline.made_by or pipeline.key_form is not None:
        return None
    if not all(columns[each.column].kind in _KEYS for each in parts):
        return None
    if not all(_adds_up(each, columns) for each in measures):
        return None
    in_task = TotalsInTask(
        decode=replace(decode, kafka=PARTITION),
        keys=parts,
        metrics=measures,
    )
    types = {each.name: each.type for each in pipeline.table_columns}
    made = _made(pipeline, types, columns)

    def before(raw: DataFrame, side_output: SideOutput | None) -> DataFrame:
        if side_output is not None:  # it needs all that quarantine holds of a record
            diverting = replace(in_task, side_output=side_output)
            return raw.select(*KAFKA_COLUMNS).mapInArrow(Rebatched(diverting), made)
        # Else nobody asks for the message key, and it may be large.
        given = raw.select("topic", "partition", F.lit(None).cast("binary").alias("key"), "value")
        return given.mapInArrow(Rebatched(in_task), made)

    return Partly(before, _fold(measures, types, columns))


def _adds_up(measure: Measure, columns: Mapping[str, Column]) -> bool:
    """Whether tasks may make this metric."""
    if measure.column is None or measure.function == "count":
        return True
    column = columns[measure.column]
    if measure.function == "sum":
        return not is_wide(column)
    return measure.function in ("min", "max") and column.kind in _ORDERED


def is_wide(column: Column) -> bool:
    """Whether a sum of it on the way may need more digits than a DECIMAL has."""
    if column.integral:
        return False
    return int(column.type.partition("(")[2].partition(",")[0]) > _ADDS_UP


def _made(pipeline: Pipeline, types: Mapping[str, str], columns: Mapping[str, Column]) -> str:
    """What tasks return, as DDL; see ``TotalsInTask``."""
    keys = ", ".join(f"{quoted(e.name)}: {types[e.name]}" for e in pipeline.target.key_parts)
    made = ["_kafka STRUCT<topic: STRING, partition: INT>", f"{RECORDS} BIGINT"]
    made.append(f"key_columns STRUCT<{keys}>")
    for number, measure in enumerate(pipeline.target.metrics):
        for part in parts_of(number, measure, columns):
            made.append(f"{part} {_type_of(part, measure, columns)}")
    return ", ".join(made)


def _type_of(part: str, measure: Measure, columns: Mapping[str, Column]) -> str:
    if part.startswith(("high", "low", "count")):
        return "BIGINT"
    kind = columns[measure.column or ""].type
    return f"DECIMAL(38,{kind.partition(',')[2]}" if measure.function == "sum" else kind


def _fold(
    measures: Sequence[Measure], types: Mapping[str, str], columns: Mapping[str, Column]
) -> Callable[[DataFrame], DataFrame]:
    """The second step, see ``Partly``."""
    partials, fits = [], []
    for number, measure in enumerate(measures):
        parts, kind = parts_of(number, measure, columns), types[measure.name]
        value = _together(measure, parts, kind)
        partials.append(f"{value} AS {added(measure)}")
        if measure.function == "sum":
            fits.append(f"({value} IS NOT NULL OR count({parts[0]}) = 0)")

    def fold(partial: DataFrame) -> DataFrame:
        """See ``totals.totals``."""
        return by_key(partial, F.sum(RECORDS), partials, fits)

    return fold


def _together(measure: Measure, parts: Sequence[str], kind: str) -> str:
    """The parts of a metric from all tasks, together; SQL."""
    if measure.column is None:
        return f"sum({RECORDS})"
    if measure.function == "count":
        return f"sum({parts[0]})"
    if measure.function != "sum":
        return f"{measure.function}({parts[0]})"
    if len(parts) == 1:
        return f"try_cast(try_sum({parts[0]}) AS {kind})"
    return sum_of_halves(*parts)


def by_key(
    rows: DataFrame, records: SparkColumn, partials: Sequence[str], fits: Sequence[str]
) -> DataFrame:
    """One row per key: ``key_columns``, ``records``, the ``partials``, and whether all ``fits``."""
    return rows.groupBy("key_columns").agg(
        records.alias(RECORDS),
        *(F.expr(each) for each in partials),
        F.expr(f"{' AND '.join(fits) or 'true'} AS {FITS}"),
    )


def sum_of_halves(high: str, low: str) -> str:
    """The sum of BIGINTs from both halves of their bits; null where it does not fit; SQL."""
    return f"try_cast(CAST(sum({high}) AS DECIMAL(20,0)) * {1 << LOW_BITS} + sum({low}) AS BIGINT)"


def added(measure: Measure) -> str:
    """The column of a fold that holds what a batch adds to a metric."""
    return quoted(f"added_{measure.name}")
