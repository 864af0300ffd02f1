"""The append: one commit with the entry, quarantine ahead of it, no batch half done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.protocol.commits import Outcome, Recorded, app_id
from rivermouth.protocol.entry import RowCounts
from rivermouth.warehouse.catalog.warehouse import with_counts
from rivermouth.write.landing import Landing, Site
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.files import FilesLanding
from tests.builders import entry_after, span
from tests.spark.batch_table import BatchTable, batch_table
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Made = Callable[[Site], Landing]


def a_pipeline(columns: str = "n BIGINT") -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "ddl": columns,
            "target": {"table": "bronze.numbers"},
        }
    )


@pytest.fixture(params=[DataFrameWriter, FilesLanding])
def made(request: pytest.FixtureRequest) -> Made:
    """Both ways of landing rows to add have one behaviour."""
    made: Made = request.param
    return made


@pytest.fixture
def table(bench: Bench, made: Made) -> BatchTable:
    return batch_table(bench, a_pipeline(), made)


def numbers(table: BatchTable) -> list[int]:
    return sorted(row["n"] for row in table.rows())


def test_a_clean_batch_is_one_commit_with_txn_and_entry(table: BatchTable, made: Made) -> None:
    table.land([(None, b'{"n": %d}' % n, 0, n) for n in range(5)])

    [created, written] = table.log.commits()
    assert created.operation == "CREATE TABLE"
    assert written.txns == {app_id("p"): 1}
    counts = (RowCounts(5, 0),) if made is FilesLanding else None  # else its files will tell
    assert table.entry.rows == counts
    assert numbers(table) == [0, 1, 2, 3, 4]
    assert not Path(f"{table.path}_quarantine").exists()


def test_a_batch_with_bad_records_is_split_and_knows_its_counts(table: BatchTable) -> None:
    plan = table.land([(None, b'{"n": 1}', 0, 0), (b"k", b"bad", 0, 1), (None, b'{"n": 2}', 1, 0)])

    assert table.entry.rows == (RowCounts(1, 1), RowCounts(1, 0))
    [bad] = table.quarantine()
    found = (bad["commit"], bad["key"], bad["value"], bad["code"])
    assert found == (plan.commit, b"k", b"bad", "RM603")


@pytest.mark.takes_long("DataFrameWriter-28-0", "FilesLanding-28-0")
@pytest.mark.parametrize(("columns", "kafka_at"), [(25, 25), (28, 0)])
def test_files_of_a_wide_table_tell_which_offsets_they_hold(
    bench: Bench, made: Made, columns: int, kafka_at: int
) -> None:
    names = [f"n{each}" for each in range(columns)]
    kinds = {"n1": "BOOLEAN", "n2": "ARRAY<BIGINT>", "n3": "STRUCT<a: BIGINT, b: BINARY>"}
    wide = a_pipeline(", ".join(f"{each} {kinds.get(each, 'BIGINT')}" for each in names))
    made_of = batch_table(bench, wide, made)
    made_of.land([(None, b'{"n7": 1}', 0, each) for each in (3, 4)])

    table = DeltaTable(str(made_of.path))
    assert [each.name for each in table.schema().fields].index("_kafka") == kafka_at
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert min(each["min._kafka.offset"] for each in files) == 3
    assert max(each["max._kafka.offset"] for each in files) == 4


@pytest.mark.thorough
def test_a_catalog_counts_the_rows_of_a_commit_without_files_that_lie_between_its_ranges(
    bench: Bench,
) -> None:
    """The table's path stands for its name in a catalog."""
    table = batch_table(bench, a_pipeline(), DataFrameWriter)
    table.land([(None, b'{"n": 1}', 0, 500)])
    [between] = DeltaTable(str(table.path)).file_uris()
    table.land([(None, b'{"n": 2}', 0, 1_000), (None, b'{"n": 3}', 1, 0)])
    Path(between).unlink()  # who reads it fails
    entry = replace(entry_after(None, span(1_000, 1_001), span(0, 1, 1)), rows=None)

    [counted] = with_counts(bench.spark, table.site.address, [Recorded(2, 0, entry)])

    assert counted.entry.rows == (RowCounts(1, 0), RowCounts(1, 0))


@pytest.mark.takes_long("DataFrameWriter")
def test_a_stale_sequence_appends_nothing(table: BatchTable) -> None:
    table.land([(None, b'{"n": 1}', 0, 0)])
    rows: list[RawRow] = [(None, b'{"n": 2}', 0, 1), (None, b'{"n": 3}', 0, 2)]

    late = table.land(rows, table.plan(rows, sequence=1))

    assert numbers(table) == [1]
    assert table.outcome(late) is Outcome.SUPERSEDED
