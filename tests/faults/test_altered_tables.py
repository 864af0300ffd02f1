"""A table that others alter while a run adds rows to it as files: it heals, or halts plainly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.faults.outcomes import check_proved
from tests.faults.spark_lake import SparkLake
from tests.points import passing

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

WRITTEN, BEFORE, AFTER = "P16", "P17", "P18"
"""Of a batch: its files are written; right before their commit; right after it."""
PROPERTIES = "SET TBLPROPERTIES ('delta.{}' = '{}')"
MAPPING = PROPERTIES.format("columnMapping.mode", "name")
ALTERED = {
    "a column at the end": (AFTER, "ADD COLUMN (more STRING)", "files"),
    "a column amid the others": (WRITTEN, "ADD COLUMN (more STRING AFTER bidder)", "files"),
    "deletion vectors": (WRITTEN, PROPERTIES.format("enableDeletionVectors", "true"), "files"),
    "a constraint": (BEFORE, "ADD CONSTRAINT small CHECK (price < 1000)", "spark"),
    "column mapping": (BEFORE, MAPPING, "spark"),
    "row tracking": (AFTER, PROPERTIES.format("enableRowTracking", "true"), "spark"),
    "its clustering": (WRITTEN, "CLUSTER BY (auction)", "files"),
}
"""When, what, and which way the rows take from then on."""


def altering(spark: SparkSession, table: Path, point: str, *how: str) -> Callable[[str], None]:
    """A failpoint at which somebody alters the table, once, in the second batch."""
    waiting, others, passed = [*how], spark.newSession(), list[str]()

    def reach(name: str) -> None:
        passed.append(name)
        while name == point and passed.count(WRITTEN) > 1 and waiting:
            others.sql(f"ALTER TABLE delta.`{table}` {waiting.pop(0)}")

    return reach


@pytest.mark.parametrize("kind", ALTERED)
def test_a_table_that_gets_in_mid_run_goes_on(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    point, how, by = ALTERED[kind]
    table = lake.ready(f"gets_{[*ALTERED].index(kind)}", 1, 15, max_offsets_per_trigger=5)
    passing(monkeypatch, altering(lake.spark, table, point, how))

    heard = lake.go()

    # The first entry begins the partition.
    assert [each.applied for each in heard.commits] == [0, 5, 5, 5]
    newest = max((table / "_delta_log").glob("*.json")).read_text("utf-8")
    assert ("Apache-Spark" in newest) is (by == "spark")
    check_proved(lake, records=15)


@pytest.mark.parametrize("point", [WRITTEN, AFTER])
def test_a_table_that_loses_a_column_in_mid_run_halts_until_it_is_back(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    table = lake.ready(f"loses_{point}", 1, 15, max_offsets_per_trigger=5)
    renamed = altering(lake.spark, table, point, MAPPING, "RENAME COLUMN price TO cost")
    passing(monkeypatch, renamed)

    for _ in ("in mid-run", "at the start"):
        halted = lake.refused()
        assert (halted.code, halted.exit_code) == ("RM414", 3)
        assert halted.what == "column price is not as configured"
    newest = DeltaTable(str(table)).version()

    lake.spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN cost TO price")
    lake.go()
    assert DeltaTable(str(table)).version() == newest + (3 if point == WRITTEN else 2)
    check_proved(lake, records=15)
