"""The state of a table, from whatever checkpoint its log has, against what deltalake says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.errors import LedgerBroken
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog

pytestmark = pytest.mark.unit

LAST = 5


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six commits, a checkpoint at the fourth; one of them replaces all files."""
    path = tmp_path / "t"
    for number in range(LAST + 1):
        txn = CommitProperties(app_transactions=[Transaction("p", number), Transaction("q", 7)])
        rows = pa.table({"n": [number]})
        if number == 2:
            write_deltalake(path, rows, mode="overwrite", commit_properties=txn)
        else:
            write_deltalake(path, rows, mode="append", commit_properties=txn)
        if number == 3:
            DeltaTable(path).create_checkpoint()
    return path


def no_hint(path: Path) -> None:
    (path / "_delta_log" / "_last_checkpoint").unlink()


def hint_of_none(path: Path) -> None:
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version": 4, "size": 3}')


def torn_hint(path: Path) -> None:
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version": ')


def stale_hint(path: Path) -> None:
    """Clean-up ended amid its work: the checkpoint of the hint is left, what followed is not."""
    hint = path / "_delta_log" / "_last_checkpoint"
    said = hint.read_text("utf-8")
    DeltaTable(path).create_checkpoint()
    hint.write_text(said)
    cleaned_up(path)
    (path / "_delta_log" / f"{4:020d}.json").unlink()


def no_checkpoint(path: Path) -> None:
    checkpoint(path).unlink()
    no_hint(path)


def cleaned_up(path: Path) -> None:
    for version in range(4):
        (path / "_delta_log" / f"{version:020d}.json").unlink()


def checkpoint(path: Path) -> Path:
    return path / "_delta_log" / f"{3:020d}.checkpoint.parquet"


def in_parts(path: Path) -> None:
    """As Spark writes a large one; of an older one, a part is left over."""
    whole = pq.read_table(checkpoint(path))
    half = whole.num_rows // 2
    for number, rows in enumerate((whole.slice(0, half), whole.slice(half)), 1):
        name = f"{3:020d}.checkpoint.{number:010d}.{2:010d}.parquet"
        pq.write_table(rows, path / "_delta_log" / name)
    checkpoint(path).unlink()
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version": 3, "parts": 2}')
    left = f"{4:020d}.checkpoint.{1:010d}.{2:010d}.parquet"
    (path / "_delta_log" / left).write_bytes(b"never read")


def with_sidecar(path: Path) -> None:
    """As the policy ``v2`` writes it: files are named in a file of their own."""
    whole, folder = pq.read_table(checkpoint(path)), path / "_delta_log" / "_sidecars"
    folder.mkdir()
    of_files = pc.is_valid(whole["add"])
    pq.write_table(whole.filter(of_files).select(["add"]), folder / "one.parquet")
    top = whole.filter(pc.invert(of_files)).drop_columns(["add", "sidecar"])
    kind = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())])
    named = pa.array([*[None] * (top.num_rows - 1), {"path": "one.parquet"}], kind)
    name = f"{3:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet"
    pq.write_table(top.append_column("sidecar", named), path / "_delta_log" / name)
    checkpoint(path).unlink()
    no_hint(path)


CHANGES: list[Callable[[Path], None]] = [
    lambda _: None,
    no_hint,
    hint_of_none,
    torn_hint,
    stale_hint,
    no_checkpoint,
    cleaned_up,
    in_parts,
    with_sidecar,
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_state_is_that_of_the_newest_version(
    table: Path, change: Callable[[Path], None]
) -> None:
    known = DeltaTable(table)
    files = {Path(each).name for each in known.file_uris()}
    change(table)

    log = DeltaLog(Store.of_folder(table), files=True)
    log.follow()

    assert log.state.version == LAST
    assert log.state.txns == {"p": LAST, "q": 7}
    assert str(log.state.metadata["id"]) == str(known.metadata().id)
    assert {path for path, _ in log.state.files or {}} == files
    definition = log.definition()
    assert definition is not None
    assert definition.schema == json.loads(known.schema().to_json())
    facts = DeltaLog.of_folder(table).table("p")
    assert (facts.txn, facts.table_id) == (LAST, str(known.metadata().id))


def test_who_follows_takes_what_came_since(table: Path) -> None:
    log = DeltaLog(Store.of_folder(table), files=True)
    log.follow()
    files = {*log.state.current}
    log.follow()
    assert (log.state.version, {*log.state.current}) == (5, files)
    write_deltalake(table, pa.table({"n": [9]}), mode="append")
    log.follow()
    assert (log.state.version, len({*log.state.current} - files)) == (6, 1)


@pytest.mark.parametrize(
    "content", ["", "{", '{"txn":{"version":3}}', '{"txn":null}', '{"txn":{"appId":"p"}}']
)
def test_a_commit_that_says_no_sense_is_named_each_time_and_followed_once_it_is_mended(
    table: Path, content: str
) -> None:
    torn = table / "_delta_log" / f"{LAST:020d}.json"
    whole = torn.read_text("utf-8")
    torn.write_text(content)
    log = DeltaLog.of_folder(table)
    for _ in range(2):
        with pytest.raises(LedgerBroken) as caught:
            log.follow()
        assert caught.value.where == str(torn)
    torn.write_text(whole)
    log.follow()
    assert (log.state.version, log.state.txns["p"]) == (LAST, LAST)


@pytest.mark.parametrize("content", [b"", b"PAR1 torn"])
def test_a_checkpoint_that_is_torn_breaks_the_ledger(table: Path, content: bytes) -> None:
    checkpoint(table).write_bytes(content)
    with pytest.raises(LedgerBroken, match="the log cannot be read"):
        DeltaLog.of_folder(table).follow()
