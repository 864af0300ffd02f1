"""The types of the settings of a target: its mode, keys, order and metrics."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rivermouth.config.totals import Measure, check_keys, read_metrics
from rivermouth.config.value_types import refused_by
from rivermouth.config.values import Commit, check_names, read_choice, read_name
from rivermouth.config.written import Schema, Written, one_of
from rivermouth.registry.shapes import SHAPES


def _list() -> Schema:
    return {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 0}


def _needs_keys() -> str:
    keyed = [f"`{name}`" for name, each in SHAPES.by_name.items() if each.keyed]
    return f"Required for mode {' or '.join(keyed)}."


def _summaries() -> str:
    return " ".join(f"`{name}`: {each.summary}." for name, each in SHAPES.by_name.items())


_Names = Annotated[tuple[str, ...], AfterValidator(check_names)]
_METRICS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_COLUMNS = "list of columns"
Keys = Annotated[
    _Names,
    AfterValidator(check_keys),
    Written(
        _list,
        _COLUMNS,
        more=lambda: f"{_needs_keys()} {refused_by(lambda shape: shape.keyed)}",
    ),
]
OrderBy = Annotated[
    _Names,
    Written(_list, _COLUMNS, more=lambda: refused_by(lambda shape: shape.ordered)),
]
Metrics = Annotated[
    tuple[Measure, ...],
    BeforeValidator(read_metrics),
    Written(
        lambda: _METRICS,
        "mapping",
        more=lambda: refused_by(lambda shape: shape.totals),
        verbatim=True,
    ),
]
CommitChoice = Annotated[
    Commit,
    BeforeValidator(lambda value: read_choice(Commit, value)),
    Written(one_of(lambda: [each.value for each in Commit])),
    Field(
        description="How rows that are added get into the table, and bad records into quarantine."
        " `auto`: tasks write data files and the driver commits them, where the table is in a"
        " folder and asks for nothing that only Spark's writer knows; elsewhere through Spark."
        " `spark`: always through Spark. It also says how entries that bring no rows are committed,"
        " in each mode. The bad records of a pipeline that sends always go through Spark. See"
        " [tables](tables.md#how-rows-are-added).",
    ),
]
ShapeName = Annotated[
    str,
    BeforeValidator(lambda value: read_name(SHAPES.by_name, value)),
    Written(one_of(lambda: SHAPES.by_name), more=_summaries),
]
