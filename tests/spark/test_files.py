"""Appends as files: rivals, altered tables, and tasks that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.errors import BatchFailed, CommitConflict
from rivermouth.formats.decoder import decoder
from rivermouth.formats.tasks import Decoder
from rivermouth.protocol.commits import entry_of
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import Position
from rivermouth.write.files.bad_records import QuarantineTarget
from rivermouth.write.files.data_files import Folder
from rivermouth.write.files.writing import Writing
from rivermouth.write.keys.entries import Reduction
from rivermouth.write.landing import RawBatch
from rivermouth.write.landings import files as landing
from tests.landing import land
from tests.reading import table_at
from tests.spark.conftest import Bench, RawRow
from tests.spark.files_table import BAD, GOOD, Table, at, made

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def table(bench: Bench) -> Table:
    return made(bench)


def files_in(folder: Path) -> list[Path]:
    return [*folder.rglob("part-*.parquet")]


def test_a_commit_of_others_since_the_plan_is_noticed_before_a_file_is_written(
    table: Table,
) -> None:
    plan = replace(table.bench.plan(1, GOOD, Position()), base=table.version)
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")

    with pytest.raises(CommitConflict, match="in the way"):
        land(table.files, RawBatch(table.bench.raw(GOOD), decoder(table.pipeline)), plan)

    assert not files_in(table.bench.folder)
    assert table.version == 1


@pytest.mark.takes_long("P16", "P12")
@pytest.mark.parametrize("point", ["P16", "P12", "P17"])
def test_a_rival_that_commits_while_files_are_written_wins_and_nothing_is_doubled(
    table: Table, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    at(monkeypatch, point, lambda: table.sql("INSERT INTO {table} (n) VALUES (100)"))
    with pytest.raises(CommitConflict, match="in the way"):
        table.land([*GOOD, BAD])
    assert table.numbers() == [100]

    table.sequence -= 1
    table.land([*GOOD, BAD])  # as the committer does, under another commit id

    assert table.numbers() == [0, 1, 2, 3, 100]
    entry = entry_of([*table.log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(4, 1),)
    held = table_at(table.bench.folder / "numbers_quarantine")
    assert held["commit"].to_pylist().count(entry.commit) == 1


def test_files_that_waited_for_a_rival_are_committed_if_they_are_still_there(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (n) VALUES (100)"))
    with pytest.raises(CommitConflict):
        table.land()
    ours = [each for each in files_in(table.path) if each.name.endswith(".zstd.parquet")]
    written = {each.name for each in ours if "-c000" not in each.name}

    table.sequence -= 1
    table.land()
    committed = {each.path for each in table.log.added(table.version)}
    assert committed == written

    at(monkeypatch, "P17", lambda: table.sql("ALTER TABLE {table} ADD COLUMN (m BIGINT AFTER n)"))
    with pytest.raises(CommitConflict):
        table.land()
    waiting = {each.name for each in files_in(table.path)}
    table.sequence -= 1
    table.land()
    others = {each.path for each in table.log.added(table.version)}
    assert not others & waiting, "the table has another column by then"
    assert len(files_in(table.path)) == len(written) + len(others) + 1, "the rest is of no use"
    assert table.numbers() == [0, 0, 1, 1, 2, 2, 3, 3, 100]


def test_of_a_batch_with_bad_records_the_files_wait_and_these_are_written_again(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (n) VALUES (100)"))
    with pytest.raises(CommitConflict):
        table.land([*GOOD, BAD])
    written = {each.name for each in files_in(table.path) if "-c000" not in each.name}

    table.sequence -= 1
    table.land([*GOOD, BAD])

    assert {each.path for each in table.log.added(table.version)} == written
    assert table.numbers() == [0, 1, 2, 3, 100]
    entry = entry_of([*table.log.commits()][-1], "p")
    assert entry is not None
    assert entry.rows == (RowCounts(4, 1),)
    held = table_at(table.bench.folder / "numbers_quarantine")
    rows = [{**each, "commit": "", "quarantined_at": None} for each in held.to_pylist()]
    assert rows[0] == rows[1]
    assert [*held["commit"].to_pylist()].count(entry.commit) == 1


@pytest.mark.thorough
def test_files_that_waited_are_left_where_they_do_not_fit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    more: RawRow = (None, b'{"n": 4}', 0, 4)
    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (n) VALUES (100)"))
    with pytest.raises(CommitConflict):
        table.land()

    table.sequence -= 1
    table.land([*GOOD, more])  # a later attempt reads further
    assert table.numbers() == [0, 1, 2, 3, 4, 100]

    at(monkeypatch, "P17", lambda: table.sql("INSERT INTO {table} (n) VALUES (101)"))
    before = {*files_in(table.path)}
    with pytest.raises(CommitConflict):
        table.land()
    for each in {*files_in(table.path)} - before:
        if "-c000" not in each.name:  # as a VACUUM without retention does
            each.unlink()

    table.sequence -= 1
    table.land()
    assert table.numbers() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 100, 101]


@pytest.mark.thorough
def test_a_table_that_is_altered_between_batches_lands_through_spark_from_then_on(
    table: Table,
) -> None:
    table.land()
    assert not table.by_spark()
    table.sql("ALTER TABLE {table} ADD CONSTRAINT small CHECK (n < 1000)")

    table.land([(None, b'{"n": 7}', 1, 0)])

    assert table.by_spark()
    assert table.numbers() == [0, 1, 2, 3, 7]
    with pytest.raises(Exception, match="small"):
        table.land([(None, b'{"n": 1000}', 1, 1)])


@pytest.mark.thorough
def test_a_constraint_that_comes_while_files_are_written_holds(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = "ALTER TABLE {table} ADD CONSTRAINT small CHECK (n < 3)"
    at(monkeypatch, "P17", lambda: table.sql(constraint))
    with pytest.raises(CommitConflict):
        table.land()
    assert table.numbers() == []


def test_a_column_of_others_is_null_in_our_files(table: Table) -> None:
    table.sql("ALTER TABLE {table} ADD COLUMN (more STRING AFTER n)")
    table.land()
    assert not table.by_spark()
    assert [row["more"] for row in table.sql("SELECT more FROM {table} ORDER BY n")] == [None] * 4


@pytest.mark.thorough
def test_a_quarantine_that_asks_for_more_lets_spark_write(table: Table) -> None:
    table.land([BAD])
    quarantine = table.bench.address("numbers_quarantine").sql
    table.bench.spark.sql(f"ALTER TABLE {quarantine} ADD CONSTRAINT c CHECK (sequence < 9)")

    table.land([*GOOD, (None, b"bad", 1, 0)])

    assert table.by_spark()


def test_files_whose_commit_is_stale_are_not_committed(table: Table) -> None:
    table.land()
    table.sequence = 0
    table.land([(None, b'{"n": 9}', 0, 9)])
    assert table.version == 1


@pytest.mark.takes_long("False")
@pytest.mark.parametrize("dies", [True, False])
def test_a_task_that_dies_amid_its_rows_commits_nothing_and_the_next_attempt_all(
    table: Table, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    made = partial(failing, dies=dies)
    monkeypatch.setattr(landing, "Writing", made)
    with pytest.raises(Exception, match="crashed" if dies else "No space left"):
        # Of two tasks, the end of one would be that of the other, too.
        table.land([*GOOD, BAD], tasks=1)
    assert table.version == 0
    left = len(files_in(table.bench.folder))
    assert (left > 0) is dies, "what a dead worker leaves is named by no commit"
    monkeypatch.undo()

    table.sequence = 0
    table.land([*GOOD, BAD])
    assert table.numbers() == [0, 1, 2, 3]


def failing(
    into: Folder,
    apart: QuarantineTarget,
    decode: Decoder | None,
    reduction: Reduction | None,
    dies: bool,
) -> Any:
    """The task, but it ends after its first rows: killed, or because the disk is full."""

    def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(28, "No space left on device")

    writing = Writing(replace(into, file_bytes=1), apart, decode, reduction)
    return lambda batches: writing(fails(batches))


def test_records_that_are_none_of_the_batch_are_not_committed(table: Table) -> None:
    plan = table.bench.plan(1, GOOD[:2], Position())
    with pytest.raises(BatchFailed, match="other records"):
        land(table.files, RawBatch(table.bench.raw(GOOD), decoder(table.pipeline)), plan)
    assert table.version == 0
