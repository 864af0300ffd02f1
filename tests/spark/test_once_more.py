"""Which rows differ from their records when these are applied once more."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rivermouth.config import Column
from rivermouth.write.shapes.by_key import differs

pytestmark = pytest.mark.spark

AT, OTHER_AT = "2026-01-01 00:00:00.123456", "2026-01-01 00:00:00.123999"
CASES = {
    "a number": ("INT", "1", "2"),
    "null": ("INT", "1", "CAST(NULL AS INT)"),
    "a time": ("TIMESTAMP", f"TIMESTAMP'{AT}'", f"TIMESTAMP'{OTHER_AT}'"),
    "a time in a map": (
        "MAP<STRING, TIMESTAMP>",
        f"map('a', TIMESTAMP'{AT}')",
        f"map('a', TIMESTAMP'{OTHER_AT}')",
    ),
    "a time without a zone in a map": (
        "MAP<STRING, TIMESTAMP_NTZ>",
        f"map('a', TIMESTAMP_NTZ'{AT}')",
        f"map('a', TIMESTAMP_NTZ'{OTHER_AT}')",
    ),
    "a null in a map": (
        "MAP<STRING, INT>",
        "map('a', CAST(NULL AS INT))",
        "CAST(map() AS MAP<STRING, INT>)",
    ),
    "a null beside a map": (
        "STRUCT<n: INT, m: MAP<STRING, INT>>",
        "named_struct('n', CAST(NULL AS INT), 'm', map('a', 1))",
        "named_struct('n', 0, 'm', map('a', 1))",
    ),
}


@pytest.mark.takes_long(
    "a number", "a time", "a time without a zone in a map", "a null in a map", "a null beside a map"
)
@pytest.mark.parametrize("case", CASES)
def test_a_row_differs_only_where_a_value_does(rivermouth_spark: SparkSession, case: str) -> None:
    kind, value, other = CASES[case]

    def different(held: str) -> bool:
        rows = (
            f"SELECT 1 AS _kafka, {held} AS c",
            f"SELECT named_struct('_kafka', 1, 'row', named_struct('c', {value})) AS change",
        )
        condition = differs([Column("c", kind)])
        [found] = rivermouth_spark.sql(
            f"SELECT {condition} AS found FROM ({rows[0]}) t, ({rows[1]}) s"
        ).collect()
        return bool(found["found"])

    assert (different(value), different(other)) == (False, True)
