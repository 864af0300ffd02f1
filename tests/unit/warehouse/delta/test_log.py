"""Reading a Delta log as plain files, over real tables that deltalake made."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.errors import Halt, LedgerBroken, LogUnreadable, TableUndone
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.history import History
from rivermouth.protocol.ways import duration_s
from rivermouth.warehouse.delta.log import DeltaLog, record_of
from tests.builders import PIPELINE, entry_after, position, replayed, span

pytestmark = pytest.mark.unit


class Table:
    """A real table to which entries are committed as a writer of ours would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.newest: Entry | None = None
        write_deltalake(str(path), rows(0))

    def wrote(self, start: int, until: int) -> Table:
        self.newest = entry_after(self.newest, span(start, until))
        txn = Transaction(app_id(PIPELINE), self.newest.sequence)
        write_deltalake(
            str(self.path),
            rows(until - start),
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={"userMetadata": to_json(self.newest)}, app_transactions=[txn]
            ),
        )
        return self

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.of_folder(self.path)

    def commit_file(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020d}.json"

    def history(self) -> History:
        return replayed(self.log.commits())

    def faults(self) -> list[type[Halt]]:
        return [type(each) for each in self.history().faults]


def rows(count: int, text: str = "x") -> pa.Table:
    return pa.table({"id": list(range(count)), "text": [text] * count}, _SCHEMA)


_SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Version 1 to 3: entry 1 to 3."""
    return Table(tmp_path / "a b" / "tü").wrote(0, 5).wrote(5, 8).wrote(8, 9)


def test_entries_and_txn_are_read_from_the_files(table: Table) -> None:
    history = table.history()
    assert (history.sequence, history.position, history.version) == (3, position(9), 3)
    assert history.faults == ()
    assert history.newest == table.newest
    assert table.log.table(app_id(PIPELINE)).txn == 3
    assert table.log.table("nobody").txn == 0


def test_the_log_tells_the_id_of_the_table(table: Table) -> None:
    assert table.log.table(app_id(PIPELINE)).table_id == str(table.delta.metadata().id)


def test_reading_back_looks_only_at_what_came_after(table: Table) -> None:
    assert [each.version for each in table.log.commits_after(1)] == [2, 3]
    assert list(table.log.commits_after(3)) == []
    table.commit_file(0).write_text("never looked at")
    assert [each.version for each in table.log.commits_after(1)] == [2, 3]


def test_a_folder_without_a_log_is_not_a_table(tmp_path: Path) -> None:
    assert DeltaLog.of_folder(tmp_path / "missing").versions() == []
    (tmp_path / "_delta_log").mkdir()
    assert DeltaLog.of_folder(tmp_path).versions() == []
    assert list(DeltaLog.of_folder(tmp_path).commits()) == []
    with pytest.raises(LedgerBroken):
        DeltaLog.of_folder(tmp_path).table(app_id(PIPELINE))


def test_added_files_and_all_files_exist_whatever_the_name_of_the_folder(table: Table) -> None:
    (added,) = table.log.added(2)
    log = DeltaLog(table.log.store, files=True)
    log.follow()
    files = [*log.state.current]
    assert added.path in files
    assert all((table.path / each).exists() for each in files)


LINE_ENDS_TO_PYTHON = "a\u2028b\u2029c\x85d"


def test_texts_of_users_in_the_statistics_do_not_break_a_commit(table: Table) -> None:
    write_deltalake(str(table.path), rows(2, LINE_ENDS_TO_PYTHON), mode="append")
    assert "\u2028" in table.commit_file(4).read_text("utf-8"), "else this proves nothing"
    assert table.history().version == 4
    assert [each.version for each in table.log.commits_after(3)] == [4]
    assert len(table.log.added(4)) == 1


def restore_by_time(table: Table) -> None:
    moment = datetime.now(timezone.utc)
    time.sleep(0.02)  # a commit of the same millisecond would be the moment's newest
    table.delta.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    table.delta.restore(moment)


Change = Callable[[Table], object]


@pytest.mark.parametrize(
    ("name", "change", "faults"),
    [
        ("compaction", lambda table: table.delta.optimize.compact(), []),
        ("a delete of some rows", lambda table: table.delta.delete("id = 1"), []),
        ("a checkpoint", lambda table: table.delta.create_checkpoint(), []),
        ("restore to the newest entry", lambda table: table.delta.restore(3), []),
        ("restore to an older entry", lambda table: table.delta.restore(2), [TableUndone]),
        ("restore to the beginning", lambda table: table.delta.restore(0), [TableUndone]),
        ("restore to a moment", restore_by_time, [TableUndone]),
        ("a delete of all rows", lambda table: table.delta.delete(), [TableUndone]),
        ("a delete where true", lambda table: table.delta.delete("true"), [TableUndone]),
        ("a delete where 1 = 1", lambda table: table.delta.delete("1 = 1"), [TableUndone]),
        (
            "an overwrite",
            lambda table: write_deltalake(str(table.path), rows(1), mode="overwrite"),
            [TableUndone],
        ),
        (
            "an overwrite of some rows",
            lambda table: write_deltalake(
                str(table.path), rows(1), mode="overwrite", predicate="id = 0"
            ),
            [],
        ),
        (
            "a table created over it",
            lambda table: DeltaTable.create(str(table.path), _SCHEMA, mode="overwrite"),
            [TableUndone],
        ),
    ],
)
def test_what_others_did_to_the_table_is_seen(
    table: Table, name: str, change: Change, faults: list[type[Halt]]
) -> None:
    table.wrote(9, 10)
    table.delta.restore(3)  # so that a restore to 3 is one to an entry, and none is the newest
    table.delta.restore(4)
    assert table.faults() == []
    change(table)
    expected = [TableUndone] if name == "restore to the newest entry" else faults
    assert table.faults() == expected, name


def test_a_restore_back_heals(table: Table) -> None:
    table.delta.restore(1)
    assert table.faults() == [TableUndone]
    table.delta.restore(3)
    assert table.faults() == []
    assert table.wrote(9, 12).faults() == []


def test_a_log_that_clean_up_has_shortened_is_read_from_where_it_begins(table: Table) -> None:
    table.delta.create_checkpoint()
    for version in (0, 1, 2):
        table.commit_file(version).unlink()
    assert [each.version for each in table.log.commits()] == [3]
    assert table.log.versions() == [3]
    history = table.history()
    assert (history.sequence, history.position, history.faults) == (3, position(9), ())
    assert table.log.table(app_id(PIPELINE)).txn == 3
    assert table.wrote(9, 12).faults() == []


def test_a_log_whose_entries_are_all_gone_still_knows_the_txn(table: Table) -> None:
    table.delta.optimize.compact()
    table.delta.create_checkpoint()
    for version in range(4):
        table.commit_file(version).unlink()
    assert table.history().newest is None
    assert table.log.table(app_id(PIPELINE)).txn == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty", b""),
        ("only a line end", b"\n"),
        ("cut", b'{"commitInfo":{"operation":"WRI'),
        ("zeros", b"\0" * 64),
        ("not UTF-8", b"\xff\xfe{}"),
        ("not objects", b"12\n"),
        ("a list", b'["txn"]\n'),
        ("a txn without appId", b'{"txn":{"version":3}}\n'),
        ("a txn that is none", b'{"txn":null}\n'),
        ("facts that are none", b'{"commitInfo":[]}\n'),
        ("a time that is none", b'{"commitInfo":{"timestamp":"noon"}}\n'),
    ],
)
def test_a_torn_commit_breaks_the_ledger_at_start_and_when_read_back(
    table: Table, name: str, content: bytes
) -> None:
    table.commit_file(3).write_bytes(content)
    with pytest.raises(LedgerBroken) as caught:
        list(table.log.commits())
    assert caught.value.where in (str(table.commit_file(3)), "version 3"), name
    with pytest.raises(LedgerBroken):
        list(table.log.commits_after(2))


def test_a_commit_that_is_missing_in_the_middle_is_a_fault(table: Table) -> None:
    table.commit_file(2).unlink()
    assert table.faults()[0] is LedgerBroken


def test_a_commit_that_is_gone_breaks_the_ledger(table: Table) -> None:
    with pytest.raises(LedgerBroken, match="gone"):
        table.log.added(9)
    with pytest.raises(LedgerBroken):
        table.log.newest_record_ms(9)


def test_a_commit_that_the_store_does_not_give_is_no_broken_ledger(table: Table) -> None:
    table.commit_file(4).mkdir()
    with pytest.raises(LogUnreadable, match="a commit cannot be read") as caught:
        list(table.log.commits_after(3))
    assert caught.value.where == str(table.commit_file(4))
    assert caught.value.exit_code == 1


def test_a_log_that_the_store_refuses_to_list_is_unreadable_and_no_empty_one(table: Table) -> None:
    folder = table.path / "_delta_log"
    shutil.rmtree(folder)
    folder.symlink_to(folder)  # no rights are needed for it to be refused, nor do any help
    with pytest.raises(LogUnreadable) as caught:
        list(table.log.commits())
    assert caught.value.where == str(folder)


def test_a_table_that_cannot_be_opened_breaks_the_ledger(table: Table) -> None:
    table.commit_file(0).unlink()
    with pytest.raises(LedgerBroken, match="a commit is missing"):
        table.log.table("x")
    shutil.rmtree(table.path)
    with pytest.raises(LedgerBroken, match="the log cannot be read"):
        table.log.table("x")


def test_other_files_in_the_log_are_passed_over(table: Table) -> None:
    folder = table.path / "_delta_log"
    for name in ("00000000000000000009.crc", ".00000000000000000009.json.crc", "9.json", "_x.json"):
        (folder / name).write_text("{}")
    (folder / "_commits").mkdir()
    assert [each.version for each in table.log.commits()] == [0, 1, 2, 3]


# As Spark writes them (Delta 4.4): a version is a number, and what is not said is null.
SPARK_RESTORE = (
    '{"commitInfo":{"timestamp":1795249724166,"operation":"RESTORE",'
    '"operationParameters":{"version":1,"timestamp":null}}}'
)
SPARK_WRITE = (
    '{"commitInfo":{"timestamp":5,"inCommitTimestamp":7,"operation":"WRITE","operationParameters":'
    '{"mode":"Append"},"userMetadata":"note"}}'
)


def test_a_record_holds_what_the_ledger_looks_at() -> None:
    restored = record_of(4, [json.loads(SPARK_RESTORE), {"txn": {"appId": "a", "version": 3}}])
    assert (restored.version, restored.operation) == (4, "RESTORE")
    assert restored.parameters["version"] == 1
    assert (restored.timestamp_ms, restored.txns) == (1795249724166, {"a": 3})
    assert restored.user_metadata is None
    wrote = record_of(5, [json.loads(SPARK_WRITE)])
    assert (wrote.timestamp_ms, wrote.user_metadata) == (7, "note")
    bare = record_of(6, [{"add": {}}])
    assert (bare.timestamp_ms, bare.operation, bare.txns) == (0, "", {})


def test_a_hole_in_the_log_is_named_before_anything_else_reads_it(tmp_path: Path) -> None:
    table = Table(tmp_path).wrote(0, 3).wrote(3, 5)
    assert table.log.versions() == [0, 1, 2]
    table.commit_file(1).unlink()
    for look in (table.log.versions, lambda: next(table.log.commits_backwards())):
        with pytest.raises(LedgerBroken, match="expected version 1; found version 2"):
            look()


def test_a_hole_is_not_taken_for_the_end_of_the_log(tmp_path: Path) -> None:
    """Else the next commit would be made in it, on a position that is long past."""
    table = Table(tmp_path).wrote(0, 3).wrote(3, 5)
    table.commit_file(1).unlink()
    with pytest.raises(LedgerBroken, match="expected version 1; found version 2"):
        DeltaLog.of_folder(table.path).follow()


@pytest.mark.parametrize(
    ("setting", "days"),
    [
        (None, 30),
        ("interval 30 days", 30),
        ("INTERVAL 2 WEEKS 1 DAY", 15),
        ("interval 36 hours", 1.5),
        ("interval 0 days", 0),
        ("interval 3 months", 1),
        ("interval '30' days", 1),
        ("for ever", 1),
    ],
)
def test_the_log_is_kept_for_so_long_and_a_day_where_nobody_understands_the_setting(
    setting: str | None, days: float
) -> None:
    assert duration_s(setting) == days * 86400
