"""Totals by key: the mode ``aggregate``.

A batch is folded to what it adds to each key, and the commit that carries its offsets adds that to
the row: ``metric = metric + n``. Each of the metrics is a sum, a count, an extreme or a sketch, so
its value does not depend on where batches begin and end. Nulls are not measured.

A sum that does not fit into its column any more is never cut: the records of that key in the batch
go to quarantine, and its row stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Column, Measure, Pipeline
from rivermouth.config.totals import SKETCH, why_spark
from rivermouth.formats.arrow import REFUSAL
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.spark.tables import literal, quoted
from rivermouth.write.keys.by_total import ByTotal, Total, TotalFold
from rivermouth.write.rows import RECORDS, Keyed

FITS = "fits"
"""The column of a fold: whether all sums of the batch fit into their columns."""
_ADDS_UP = 28
"""The most digits of a decimal whose sums surely fit: 10 billion of them need at most 38."""
_LOW_BITS = 32
_PRECISION = 12  # lg_config_k of the sketch: 4,096 registers, a standard error of 1.6 %
_REFUSED = f"raise_error({literal(REFUSAL)})"


def totals(pipeline: Pipeline) -> Keyed:
    """What a batch adds to each key; see the module."""
    measures, keys = pipeline.target.metrics, [each.name for each in pipeline.target.key_parts]
    types = {each.name: each.type for each in pipeline.table_columns}
    integral = frozenset(each.name for each in pipeline.columns if each.integral)
    inserts = {each: f"s.key_columns.{quoted(each)}" for each in keys}
    updates: dict[str, str] = {}
    for each in measures:
        inserts |= _columns(each, _checked(each, f"s.{_added(each)}"))
        updates |= _columns(each, _together(each, types[each.name]))
    sums = [each for each in measures if each.function == "sum"]
    summed = {each.column for each in sums}
    wide = frozenset(e.name for e in pipeline.columns if e.name in summed and _is_wide(e))
    overflow = [f"({_both(each)} AND {_sum(each, types[each.name])} IS NULL)" for each in sums]
    partials = [
        f"{_aggregate(each, types[each.name], integral)} AS {_added(each)}" for each in measures
    ]

    def fold(good: DataFrame) -> DataFrame:
        """One row per key: ``key_columns``, ``records``, what each metric adds, and ``fits``."""
        fits = [_fits(each, types[each.name], wide) for each in sums]
        # ``_kafka`` is not null; where it refuses bad records, Spark must not leave it out.
        return good.groupBy("key_columns").agg(
            F.count("_kafka").alias(RECORDS),
            *(F.expr(each) for each in partials),
            F.expr(f"{' AND '.join(fits) or 'true'} AS {FITS}"),
        )

    return Keyed(
        keys=tuple(keys),
        fold=fold,
        inserts=inserts,
        update="true",
        updates=updates,
        overflows=" OR ".join([f"NOT s.{FITS}", *overflow]) if sums else None,
        reads=frozenset(each.column for each in measures if each.column is not None),
        ordered=False,
        by_files=by_total(pipeline),
    )


def by_total(pipeline: Pipeline) -> ByTotal | None:
    """How they land as files; None where Spark has to make them (``config.totals``)."""
    if why_spark(pipeline.target.metrics, pipeline.columns):
        return None
    keys = tuple(each.name for each in pipeline.target.key_parts)
    types = schema_of(pipeline.table_columns)
    totals = tuple(
        Total(number, each, types.field(each.name).type)
        for number, each in enumerate(pipeline.target.metrics)
    )
    return ByTotal(keys, TotalFold(keys, totals))


def _aggregate(measure: Measure, kind: str, integral: frozenset[str]) -> str:
    """What a batch adds to a metric; SQL over decoded rows."""
    column = _column(measure)
    if measure.function == "sum":
        return _sum_of(column, kind)
    if measure.function == "approx_distinct":
        value = f"CAST({column} AS BIGINT)" if measure.column in integral else column
        return f"hll_sketch_agg({value}, {_PRECISION})"
    return f"{measure.function}({column})"


def _column(measure: Measure) -> str:
    return "*" if measure.column is None else f"row.{quoted(measure.column)}"


def _sum_of(column: str, kind: str) -> str:
    """The sum in the type of its column; null where it does not fit."""
    if kind != "BIGINT":
        return f"try_cast(try_sum({column}) AS {kind})"
    # ``try_sum`` of a BIGINT is null if a sum on the way does not fit: that depends on the order of
    # the records. The sums of both halves of their bits always fit.
    value = f"CAST({column} AS BIGINT)"
    return _sum_of_halves(f"shiftright({value}, {_LOW_BITS})", f"{value} & {(1 << _LOW_BITS) - 1}")


def _fits(measure: Measure, kind: str, wide: frozenset[str]) -> str:
    """Whether the sum of a batch alone fits into its column.

    Of ``wide`` decimals, a sum on the way may not fit, which depends on the order of the records.
    Where the sum of what they are without their signs fits, each sum on the way does.
    """
    column = _column(measure)
    fits = f"{_sum_of(column, kind)} IS NOT NULL"
    if measure.column in wide:
        fits += f" AND try_sum(abs({column})) IS NOT NULL"
    return f"({fits} OR count({column}) = 0)"


def _checked(measure: Measure, value: str) -> str:
    """The value for a row that is new; fails where a sum of the batch does not fit."""
    if measure.function != "sum":
        return value
    return f"CASE WHEN s.{FITS} THEN {value} ELSE {_REFUSED} END"


def _both(measure: Measure) -> str:
    return f"t.{quoted(measure.name)} IS NOT NULL AND s.{_added(measure)} IS NOT NULL"


def _sum(measure: Measure, kind: str) -> str:
    """The old and the new sum together; null where they do not fit."""
    return f"try_cast(try_add(t.{quoted(measure.name)}, s.{_added(measure)}) AS {kind})"


def _together(measure: Measure, kind: str) -> str:
    """The value of a row that is there, with what the batch adds."""
    old, new = f"t.{quoted(measure.name)}", f"s.{_added(measure)}"
    if measure.function == "sum":
        both = f"WHEN {_both(measure)} THEN coalesce({_sum(measure, kind)}, {_REFUSED})"
        return f"CASE WHEN NOT s.{FITS} THEN {_REFUSED} {both} ELSE coalesce({old}, {new}) END"
    if measure.function == "count":
        return f"{old} + {new}"
    if measure.function == "approx_distinct":
        return f"hll_union(t.{quoted(measure.name + SKETCH)}, {new})"
    return f"{'least' if measure.function == 'min' else 'greatest'}({old}, {new})"


def _columns(measure: Measure, value: str) -> Mapping[str, str]:
    """The columns of a metric; an approximate count has its sketch beside it."""
    if measure.function != "approx_distinct":
        return {measure.name: value}
    return {
        measure.name: f"hll_sketch_estimate({value})",
        f"{measure.name}{SKETCH}": value,
    }


def _is_wide(column: Column) -> bool:
    """Whether a sum of it on the way may need more digits than a DECIMAL has."""
    if column.integral:
        return False
    return int(column.type.partition("(")[2].partition(",")[0]) > _ADDS_UP


def _sum_of_halves(high: str, low: str) -> str:
    """The sum of BIGINTs from both halves of their bits; null where it does not fit; SQL."""
    return f"try_cast(CAST(sum({high}) AS DECIMAL(20,0)) * {1 << _LOW_BITS} + sum({low}) AS BIGINT)"


def _added(measure: Measure) -> str:
    """The column of a fold that holds what a batch adds to a metric."""
    return quoted(f"added_{measure.name}")
