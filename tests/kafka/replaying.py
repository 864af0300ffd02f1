"""What the tests of ``rivermouth replay`` do with a lake that has one pipeline, ``p``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.config import TableName, load
from rivermouth.replay import command
from rivermouth.replay.report import Replayed, ReplayPlan
from rivermouth.replay.request import read_bound
from rivermouth.verification import verify
from tests.lake import Lake


def replay(
    lake: Lake,
    spark: SparkSession,
    begin: str,
    end: str = "",
    into: str = "",
    *,
    dry_run: bool = False,
    meanwhile: Callable[[], object] = lambda: None,
) -> Replayed:
    """``meanwhile``: what others do while somebody is asked."""
    plans: list[ReplayPlan] = []

    def agree(plan: ReplayPlan) -> bool:
        plans.append(plan)
        meanwhile()
        return not dry_run

    found = command.replay(
        load(lake.file),
        spark,
        lake.scratch,
        "p",
        read_bound("--from", begin),
        read_bound("--to", end) if end else None,
        TableName.parse(into) if into else None,
        agree,
    )
    assert plans == [found.plan]
    return found


def by_key(lake: Lake, table: str, key: str, *columns: str) -> dict[int, Any]:
    """The values of one column, or of several, by a key that each row has alone."""
    rows = lake.rows(table)
    values = ([row[name] for name in columns] for row in rows)
    found = {
        row[key]: each[0] if len(each) == 1 else (*each,)
        for row, each in zip(rows, values, strict=True)
    }
    assert len(found) == len(rows)
    return found


def problems(lake: Lake) -> list[str]:
    [found] = verify(load(lake.file), strict=True).pipelines
    assert found.ok is (not found.problems)
    return [*found.problems]


def sql(spark: SparkSession, table: Path, statement: str) -> None:
    spark.sql(statement.replace("TABLE", f"delta.`{table}`"))
