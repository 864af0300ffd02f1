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

from rivermouth.config import Measure, Pipeline
from rivermouth.config.totals import SKETCH
from rivermouth.formats.arrow import REFUSAL
from rivermouth.spark.tables import literal, quoted
from rivermouth.write.rows import Keyed
from rivermouth.write.shapes.partial_totals import (
    FITS,
    LOW_BITS,
    added,
    by_key,
    is_wide,
    partly,
    sum_of_halves,
)

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
        inserts |= _columns(each, _checked(each, f"s.{added(each)}"))
        updates |= _columns(each, _together(each, types[each.name]))
    sums = [each for each in measures if each.function == "sum"]
    summed = {each.column for each in sums}
    wide = frozenset(e.name for e in pipeline.columns if e.name in summed and is_wide(e))
    overflow = [f"({_both(each)} AND {_sum(each, types[each.name])} IS NULL)" for each in sums]
    partials = [_partial(each, types[each.name], integral) for each in measures]

    def fold(good: DataFrame) -> DataFrame:
        """One row per key: ``key_columns``, ``records``, what each metric adds, and ``fits``."""
        fits = [_fits(each, types[each.name], wide) for each in sums]
        # ``_kafka`` is not null; where it refuses bad records, Spark must not leave it out.
        return by_key(good, F.count("_kafka"), partials, fits)

    return Keyed(
        keys=tuple(keys),
        fold=fold,
        inserts=inserts,
        update="true",
        updates=updates,
        overflows=" OR ".join([f"NOT s.{FITS}", *overflow]) if sums else None,
        reads=frozenset(each.column for each in measures if each.column is not None),
        ordered=False,
        partly=partly(pipeline),
    )


def _partial(measure: Measure, kind: str, integral: frozenset[str]) -> str:
    """The aggregate of a batch, named; SQL over decoded rows."""
    return f"{_aggregate(measure, kind, integral)} AS {added(measure)}"


def _aggregate(measure: Measure, kind: str, integral: frozenset[str]) -> str:
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
    return sum_of_halves(f"shiftright({value}, {LOW_BITS})", f"{value} & {(1 << LOW_BITS) - 1}")


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
    return f"t.{quoted(measure.name)} IS NOT NULL AND s.{added(measure)} IS NOT NULL"


def _sum(measure: Measure, kind: str) -> str:
    """The old and the new sum together; null where they do not fit."""
    return f"try_cast(try_add(t.{quoted(measure.name)}, s.{added(measure)}) AS {kind})"


def _together(measure: Measure, kind: str) -> str:
    """The value of a row that is there, with what the batch adds."""
    old, new = f"t.{quoted(measure.name)}", f"s.{added(measure)}"
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
