"""How many rows a function can have made of a record: told by the plan of what it returned.

Spark's optimizer may evaluate less than a function was given: a filter moves below the decoding,
a limit ends early. So a bad record is noticed on the way only if each row is made of its record
alone. Anything else takes the longer way, see ``landings.dataframe_writer``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from pyspark.sql import DataFrame

from rivermouth.formats.in_arrow import REFUSAL
from rivermouth.spark.plan import analyzed

_NODE = re.compile(r"\w+")
_KAFKA = re.compile(r"_kafka#\d+")
_KEEPS = {"Project", "SubqueryAlias"}
_LEAVES_OUT = {*_KEEPS, "Filter"}
_REPEATS = {*_LEAVES_OUT, "Generate"}


class RowsOfRecord(Enum):
    """How many rows there can be of one record."""

    ONE = "one"
    AT_MOST_ONE = "at most one"
    SEVERAL = "any number, each made of its record alone"
    ANY = "any number"


def rows_of_record(made: DataFrame) -> RowsOfRecord:
    """How many rows of a record are in ``made``, which was made of rows with ``refusing``."""
    return judged(analyzed(made.select("_kafka")))


def judged(plan: Sequence[str]) -> RowsOfRecord:
    """The same, from the analyzed plan of the column ``_kafka`` alone.

    The nodes down to the one that holds the refusal are what the function added. The column must be
    the one that the refusal made: a copy of it could be made without evaluating it.
    """
    given = next((at for at, line in enumerate(plan) if REFUSAL in line), None)
    column = _KAFKA.search(plan[0]) if plan else None
    if given is None or column is None or f"AS {column[0]}" not in plan[given]:
        return RowsOfRecord.ANY
    nodes = {found[0] if (found := _NODE.match(line)) else line for line in plan[:given]}
    if nodes <= _KEEPS:
        return RowsOfRecord.ONE
    if nodes <= _LEAVES_OUT:
        return RowsOfRecord.AT_MOST_ONE
    return RowsOfRecord.SEVERAL if nodes <= _REPEATS else RowsOfRecord.ANY
