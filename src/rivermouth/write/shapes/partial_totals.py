"""Totals in two steps: tasks fold the records that they decode, and Spark what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column, Measure, Pipeline
from rivermouth.formats.decoded import PARTITION
from rivermouth.formats.in_arrow import KAFKA_COLUMNS
from rivermouth.formats.in_task import in_task_of
from rivermouth.formats.joined import Joined
from rivermouth.formats.sieve import Sieve
from rivermouth.spark.address import quoted
from rivermouth.write.rows import RECORDS, Partly
from rivermouth.write.totals_in_task import LOW_BITS, Metric, Part, TotalsInTask, parts_of

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
        keys=tuple(Part(each.name, each.column, each.width_us) for each in parts),
        metrics=tuple(Metric(each.function, each.column) for each in measures),
    )
    types = {each.name: each.type for each in pipeline.table_columns}
    made = _made(pipeline, types, columns)

    def before(raw: DataFrame, sieve: Sieve | None) -> DataFrame:
        if sieve is not None:  # it needs all that quarantine holds of a record
            given, sieving = raw.select(*KAFKA_COLUMNS), replace(in_task, sieve=sieve)
            return given.mapInArrow(Joined(sieving), made)
        # Else nobody asks for the message key, and it may be large.
        given = raw.select("topic", "partition", F.lit(None).cast("binary").alias("key"), "value")
        return given.mapInArrow(Joined(in_task), made)

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
        for part in _parts(number, measure, columns):
            made.append(f"{part} {_type_of(part, measure, columns)}")
    return ", ".join(made)


def _parts(number: int, measure: Measure, columns: Mapping[str, Column]) -> tuple[str, ...]:
    integral = measure.column is not None and columns[measure.column].integral
    return parts_of(number, Metric(measure.function, measure.column), integral=integral)


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
        parts, kind = _parts(number, measure, columns), types[measure.name]
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
