"""Delta's lock in the JVM keeps its commits and those of the driver apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.spark.commit_lock import can_lock, commit_lock
from rivermouth.write.files.table import FilesTable
from rivermouth.write.landings import by_driver
from tests.spark.conftest import Bench
from tests.spark.files_table import BAD, GOOD, made
from tests.spark.test_entries_alone import orders
from tests.spark.test_recording import sending
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

A_MOMENT_S = 0.5
APP = "rivermouth/p"


def test_while_the_lock_is_held_delta_commits_nothing_and_goes_on_after_it(bench: Bench) -> None:
    table = made(bench)
    table.sql("INSERT INTO {table} (n) VALUES (1)")
    before = table.version
    with commit_lock(bench.spark, table.log.path.as_posix()):
        rival = _started(lambda: table.sql("INSERT INTO {table} (n) VALUES (2)"))
        rival.join(A_MOMENT_S)
        assert rival.is_alive()
        assert table.version == before
    rival.join()
    assert table.version == before + 1


def test_the_driver_commits_only_while_it_has_the_lock(bench: Bench) -> None:
    table = made(bench)
    path = table.log.path.as_posix()
    files = FilesTable(path, "p", partial(commit_lock, bench.spark, path))
    files.newest()
    before = table.version
    with commit_lock(bench.spark, path):
        ours = _started(lambda: files.append([], "said", (APP, 1)))
        ours.join(A_MOMENT_S)
        assert ours.is_alive()
        assert table.version == before
    ours.join()
    assert table.version == before + 1


def test_a_block_that_fails_lets_go_of_the_lock(bench: Bench) -> None:
    table = made(bench)
    with pytest.raises(ZeroDivisionError), commit_lock(bench.spark, table.log.path.as_posix()):
        raise ZeroDivisionError
    taken = _started(partial(_take, bench.spark, table.log.path.as_posix()))
    wait_for(lambda: not taken.is_alive())


def test_a_session_of_this_machine_can_lock(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_lock(bench.spark)
    monkeypatch.setattr(bench.spark.sparkContext, "_gateway", object())
    assert not can_lock(bench.spark)


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The tables whose lock was held, by name."""
    held: set[str] = set()

    @contextmanager
    def lock(session: SparkSession, path: str) -> Iterator[None]:
        with commit_lock(session, path):
            held.add(Path(path).name)
            yield

    monkeypatch.setattr(by_driver, "commit_lock", lock)
    return held


@pytest.mark.parametrize(
    ("commit", "tables"),
    [
        (lambda bench: made(bench).land(GOOD), {"numbers"}),
        (lambda bench: made(bench).land([*GOOD, BAD]), {"numbers", "numbers_quarantine"}),
        (lambda bench: orders(bench).record(), {"orders"}),
        (lambda bench: orders(bench).land([BAD]), {"orders", "orders_quarantine"}),
        (lambda bench: (table := sending(bench)).record(table.plan(1)), {"ledger"}),
    ],
    ids=["rows", "rows and bad ones", "an entry alone", "a bad batch", "an entry of what is sent"],
)
def test_each_commit_of_the_driver_is_made_under_the_lock(
    bench: Bench, locked: set[str], commit: Callable[[Bench], object], tables: set[str]
) -> None:
    commit(bench)
    assert locked == tables


def _take(session: SparkSession, path: str) -> None:
    with commit_lock(session, path):
        pass


def _started(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread
