"""The append: one commit with the entry, quarantine ahead of it, no batch half done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermouth.config import Pipeline
from rivermouth.formats.decoder import decoder
from rivermouth.protocol.commits import Outcome, Recorded, app_id, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.warehouse.catalog.warehouse import with_counts
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.tables import create_target
from rivermouth.write.landing import Landing, RawBatch, Site
from rivermouth.write.landings.dataframe_writer import DataFrameWriter
from rivermouth.write.landings.files import FilesLanding
from tests.builders import entry_after, span
from tests.landing import land
from tests.spark.conftest import Bench, RawRow

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Made = Callable[[Site], Landing]


def a_pipeline(columns: str = "n BIGINT") -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "json"},
            "columns": columns,
            "target": {"table": "bronze.numbers"},
        }
    )


@pytest.fixture(params=[DataFrameWriter, FilesLanding])
def made(request: pytest.FixtureRequest) -> Made:
    """Both ways of landing rows to add have one behaviour."""
    made: Made = request.param
    return made


def landing(bench: Bench, made: Made) -> tuple[Landing, FolderLog]:
    site = bench.site(a_pipeline(), "numbers")
    create_target(bench.spark, a_pipeline(), site.address)
    return made(site), FolderLog(bench.folder / "numbers")


def land_rows(bench: Bench, append: Landing, rows: list[RawRow], sequence: int = 1) -> None:
    plan = bench.plan(sequence, rows, Position())
    land(append, RawBatch(bench.raw(rows), decoder(a_pipeline())), plan)


def numbers(bench: Bench) -> list[int]:
    rows = DeltaTable(str(bench.folder / "numbers")).to_pyarrow_table().to_pylist()
    return sorted(row["n"] for row in rows)


def test_a_clean_batch_is_one_commit_with_txn_and_entry(bench: Bench, made: Made) -> None:
    append, log = landing(bench, made)
    land_rows(bench, append, [(None, b'{"n": %d}' % n, 0, n) for n in range(5)])

    [created, written] = log.commits()
    assert created.operation == "CREATE TABLE"
    assert written.txns == {app_id("p"): 1}
    entry = entry_of(written, "p")
    assert entry is not None
    counts = (RowCounts(5, 0),) if made is FilesLanding else None  # else its files will tell
    assert entry.rows == counts
    assert numbers(bench) == [0, 1, 2, 3, 4]
    assert not (bench.folder / "numbers_quarantine").exists()


def test_a_batch_with_bad_records_is_split_and_knows_its_counts(bench: Bench, made: Made) -> None:
    append, log = landing(bench, made)
    land_rows(bench, append, [(None, b'{"n": 1}', 0, 0), (b"k", b"bad", 0, 1), (None, b"{}", 1, 0)])

    entry = entry_of([*log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(1, 1), RowCounts(1, 0))
    held = DeltaTable(str(bench.folder / "numbers_quarantine")).to_pyarrow_table().to_pylist()
    assert [(row["commit"], row["key"], row["value"], row["code"]) for row in held] == [
        (entry.commit, b"k", b"bad", "RM603")
    ]


@pytest.mark.takes_long("DataFrameWriter-28-0", "Files-28-0")
@pytest.mark.parametrize(("columns", "kafka_at"), [(25, 25), (28, 0)])
def test_files_of_a_wide_table_tell_which_offsets_they_hold(
    bench: Bench, made: Made, columns: int, kafka_at: int
) -> None:
    names = [f"n{each}" for each in range(columns)]
    kinds = {"n1": "BOOLEAN", "n2": "ARRAY<BIGINT>", "n3": "STRUCT<a: BIGINT, b: BINARY>"}
    wide = a_pipeline(", ".join(f"{each} {kinds.get(each, 'BIGINT')}" for each in names))
    site = bench.site(wide, "wide")
    create_target(bench.spark, wide, site.address)
    rows: list[RawRow] = [(None, b'{"n7": 1}', 0, each) for each in (3, 4)]
    land(made(site), RawBatch(bench.raw(rows), decoder(wide)), bench.plan(1, rows, Position()))

    table = DeltaTable(str(bench.folder / "wide"))
    assert [each.name for each in table.schema().fields].index("_kafka") == kafka_at
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert min(each["min._kafka.offset"] for each in files) == 3
    assert max(each["max._kafka.offset"] for each in files) == 4


@pytest.mark.thorough
def test_a_catalog_counts_the_rows_of_a_commit_without_files_that_lie_between_its_ranges(
    bench: Bench,
) -> None:
    """The table's path stands for its name in a catalog."""
    append, _ = landing(bench, DataFrameWriter)
    land_rows(bench, append, [(None, b'{"n": 1}', 0, 500)])
    [between] = DeltaTable(str(bench.folder / "numbers")).file_uris()
    land_rows(bench, append, [(None, b'{"n": 2}', 0, 1_000), (None, b'{"n": 3}', 1, 0)], 2)
    Path(between).unlink()  # who reads it fails
    entry = replace(entry_after(None, span(1_000, 1_001), span(0, 1, 1)), rows=None)

    [counted] = with_counts(bench.spark, bench.address("numbers"), [Recorded(2, 0, entry)])

    assert counted.rows == (RowCounts(1, 0), RowCounts(1, 0))


@pytest.mark.takes_long("DataFrameWriter")
def test_a_stale_sequence_appends_nothing(bench: Bench, made: Made) -> None:
    append, log = landing(bench, made)
    land_rows(bench, append, [(None, b'{"n": 1}', 0, 0)])
    rows: list[RawRow] = [(None, b'{"n": 2}', 0, 0), (None, b'{"n": 3}', 0, 1)]
    late = bench.plan(1, rows, Position())

    land(append, RawBatch(bench.raw(rows), decoder(a_pipeline())), late)

    assert numbers(bench) == [1]
    assert classify(late, log.commits()) is Outcome.SUPERSEDED
