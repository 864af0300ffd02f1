"""Queries leave out data files by our statistics, and never a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.statistics import leaves_of
from rivermouth.write.files.data_files import DataFile, Files, Folder
from rivermouth.write.files.table import FilesTable, appended
from tests.spark.conftest import Bench
from tests.spark.files_table import made
from tests.spark.test_file_statistics import CASES, cast, split

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SKIPPING = "spark.databricks.delta.stats.skipping"
ASKED = ("not a number and infinite", "times", "texts at the boundary")
IN_FULL = (
    "whole numbers",
    "floats",
    "zeros with both signs",
    "decimals",
    "days",
    "texts beyond ASCII",
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", [*ASKED, *(pytest.param(each, marks=pytest.mark.thorough) for each in IN_FULL)]
)
def test_a_query_finds_the_same_rows_with_and_without_statistics(bench: Bench, case: str) -> None:
    types, rows = CASES[case]
    kinds = split(types)
    table = a_file_for_each_row(bench, kinds, rows)
    asked = [*predicates(kinds, rows)]
    statement = " UNION ALL ".join(
        f"SELECT {number}, CAST(struct(*) AS STRING) FROM {table} WHERE {each}"
        for number, each in enumerate(asked)
    )
    found = sorted(map(tuple, bench.spark.sql(statement).collect()))
    bench.spark.conf.set(SKIPPING, "false")
    try:
        without = sorted(map(tuple, bench.spark.sql(statement).collect()))
    finally:
        bench.spark.conf.unset(SKIPPING)

    assert found == without
    assert {number for number, _ in found} == {*range(len(asked))}, "each asks for a row"


def test_a_file_that_holds_no_such_row_is_not_read(bench: Bench) -> None:
    table = made(bench)
    for number in range(3):
        table.land([(None, b'{"n": %d}' % number, 0, number)])
    for each in table.path.glob("**/part-*.parquet"):
        if pq.read_table(each)["n"].to_pylist() != [1]:
            each.unlink()  # whoever opens it fails
    assert [row["n"] for row in table.sql("SELECT n FROM {table} WHERE n = 1")] == [1]
    assert [row["n"] for row in table.sql("SELECT n FROM {table} WHERE _kafka.offset = 1")] == [1]


def predicates(kinds: list[str], rows: list[str]) -> Iterator[str]:
    """Of each value: which rows have it."""
    for row in rows:
        for at, (value, kind) in enumerate(zip(split(row), kinds, strict=True)):
            if value == "null":
                yield f"c{at} IS NULL"
            else:
                yield f"c{at} = {cast(value, kind)}"


def a_file_for_each_row(bench: Bench, kinds: list[str], rows: list[str]) -> str:
    """A table of these rows, each in a data file of ours."""
    schema = ", ".join(f"c{at} {kind}" for at, kind in enumerate(kinds))
    values = [f"SELECT {', '.join(map(cast, split(row), kinds))}" for row in rows]
    theirs, ours = bench.address("by_spark"), bench.address("as_files")
    for each in (theirs, ours):
        bench.spark.sql(f"CREATE TABLE {each.sql} ({schema}) USING delta")
    bench.spark.sql(f"INSERT INTO {theirs.sql} {' UNION ALL '.join(values)}")
    table = FilesTable(Store.of_folder(Path(ours.path)), "p")
    table.newest()
    definition = DeltaLog.of_folder(Path(ours.path)).definition()
    assert definition is not None
    into = Folder(table.store, leaves_of(definition), tight=False)
    table.after_others(appended(files(into, DeltaTable(theirs.path).file_uris())))
    return ours.sql


def files(into: Folder, sources: list[str]) -> list[DataFile]:
    made: list[DataFile] = []
    for rows in (batch for each in sources for batch in pq.read_table(Path(each)).to_batches()):
        for at in range(len(rows)):
            one = Files(into, len(made))
            one.add(rows.slice(at, 1))
            made += one.end()
    return made
