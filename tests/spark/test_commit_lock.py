"""Delta's lock in the JVM keeps its commits and those of the driver apart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermouth.spark.tables import can_lock, commit_lock, under_commit_lock
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.write.files.table import FilesTable
from rivermouth.write.landings import driver_commits
from tests.spark.conftest import Bench
from tests.spark.files_table import BAD, GOOD, made
from tests.spark.test_entries_alone import orders
from tests.spark.test_recording import sending
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

A_MOMENT_S = 0.5
APP = "rivermouth/p"


def test_while_the_lock_is_held_a_transaction_that_has_begun_does_not_commit(
    bench: Bench,
) -> None:
    table = made(bench)
    path, before = table.path.as_posix(), table.version
    commit = _transaction(bench.spark, path)
    with commit_lock(bench.spark, path):
        rival = _started(commit)
        rival.join(A_MOMENT_S)
        assert rival.is_alive()
        assert table.version == before
    rival.join()
    assert table.version == before + 1


def test_the_driver_commits_only_while_it_has_the_lock(bench: Bench) -> None:
    table = made(bench)
    path, alone = table.path.as_posix(), partial(under_commit_lock, bench.spark)
    files = FilesTable(Store.of_folder(table.path), "p", partial(alone, path))
    files.newest()
    before = table.version
    with commit_lock(bench.spark, path):
        ours = _started(lambda: files.also(Commit("WRITE", txns={APP: 1})))
        ours.join(A_MOMENT_S)
        assert ours.is_alive()
        assert table.version == before
    ours.join()
    assert table.version == before + 1


def test_a_block_that_fails_lets_go_of_the_lock(bench: Bench) -> None:
    table = made(bench)
    with pytest.raises(ZeroDivisionError), commit_lock(bench.spark, table.path.as_posix()):
        raise ZeroDivisionError
    taken = _started(partial(_take, bench.spark, table.path.as_posix()))
    wait_for(lambda: not taken.is_alive())


def test_a_session_of_this_machine_can_lock(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_lock(bench.spark)
    monkeypatch.setattr(bench.spark.sparkContext, "_gateway", object())
    assert not can_lock(bench.spark)


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The tables whose lock was held, by name."""
    held: set[str] = set()

    def lock(session: SparkSession, path: str, act: Callable[[], object]) -> None:
        held.add(Path(path).name)
        under_commit_lock(session, path, act)

    monkeypatch.setattr(driver_commits, "under_commit_lock", lock)
    return held


@pytest.mark.takes_long("rows and bad ones", "a bad batch")
@pytest.mark.parametrize(
    ("commit", "tables"),
    [
        (lambda bench: made(bench).land(GOOD), {"numbers"}),
        (lambda bench: made(bench).land([*GOOD, BAD]), {"numbers", "numbers_quarantine"}),
        (lambda bench: orders(bench).record(), {"orders"}),
        (lambda bench: orders(bench).land([BAD]), {"orders"}),  # Spark writes the quarantine
        (lambda bench: (table := sending(bench)).record(table.plan(1)), {"ledger"}),
    ],
    ids=["rows", "rows and bad ones", "an entry alone", "a bad batch", "an entry of what is sent"],
)
def test_each_commit_of_the_driver_is_made_under_the_lock(
    bench: Bench, locked: set[str], commit: Callable[[Bench], object], tables: set[str]
) -> None:
    commit(bench)
    assert locked == tables


def test_an_interrupt_cannot_come_between_the_lock_and_its_release(bench: Bench) -> None:
    """It comes into the main thread only."""
    path = made(bench).path.as_posix()
    ran: list[threading.Thread] = []

    def act() -> None:
        ran.append(threading.current_thread())

    under_commit_lock(bench.spark, path, act)
    other = _started(partial(under_commit_lock, bench.spark, path, act))
    other.join()
    assert ran[0] is not threading.main_thread()
    assert ran[1] is other


def test_what_the_jvm_says_of_the_lock_is_not_told_as_a_fault_of_the_disk(bench: Bench) -> None:
    def gone(act: Callable[[], object]) -> object:
        raise ConnectionRefusedError("Connection refused")

    files = FilesTable(Store.of_folder(made(bench).path), "p", gone)
    files.newest()
    with pytest.raises(ConnectionRefusedError):
        files.also(Commit("WRITE", txns={APP: 1}))


def _transaction(session: SparkSession, path: str) -> Callable[[], object]:
    """The commit of a transaction of Delta's, which has begun."""
    jvm: Any = session.sparkContext._jvm
    delta, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    begun = delta.DeltaLog.forTable(session._jsparkSession, path).startTransaction(none, none)
    action = delta.actions.SetTransaction("rival", 1, none)
    actions = getattr(jvm.scala.collection.immutable.Nil, "$colon$colon")(action)
    operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    return lambda: begun.commit(actions, operation)


def _take(session: SparkSession, path: str) -> None:
    with commit_lock(session, path):
        pass


def _started(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread
