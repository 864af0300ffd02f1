"""The log of a table in a catalog, over what its history answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from rivermouth.errors import BatchFailed, LedgerBroken, LogUnreadable, RivermouthError
from rivermouth.protocol.entry_json import to_json
from rivermouth.spark.tables import Address
from rivermouth.warehouse.catalog.warehouse import CatalogLog
from tests.builders import entry_after, span

pytestmark = pytest.mark.unit

ADDRESS = Address(name=("main", "silver", "orders"))
MISSING = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `silver`.`orders` cannot be found.\nmore"


class Session:
    """Answers DESCRIBE HISTORY with the newest of ``commits``, or fails with ``fault``."""

    def __init__(self, *commits: dict[str, Any], fault: Exception | None = None) -> None:
        self._commits = commits
        self._fault = fault
        self._found: list[Row] = []
        self.limits: list[int | None] = []
        """How many commits each statement asked for; None: all."""

    def sql(self, statement: str) -> Session:
        assert statement.startswith(f"DESCRIBE HISTORY {ADDRESS.sql}")
        limit = statement.partition("LIMIT ")[2]
        self.limits.append(int(limit) if limit else None)
        self._found = [Row(**each) for each in reversed(self._commits)][: self.limits[-1]]
        return self

    def selectExpr(self, *columns: str) -> Session:
        return self

    def collect(self) -> list[Row]:
        if self._fault is not None:
            raise self._fault
        return self._found


def a_log(*commits: dict[str, Any], fault: Exception | None = None) -> CatalogLog:
    return CatalogLog(cast(SparkSession, Session(*commits, fault=fault)), ADDRESS)


def commit(version: int, operation: str = "WRITE", text: str | None = None) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp_ms": version,
        "operation": operation,
        "parameters": {},
        "user_metadata": text,
        "metrics": {"numDeletedRows": "3"} if operation == "DELETE" else None,
    }


def test_only_operations_by_which_entries_are_written_carry_one() -> None:
    text = to_json(entry_after(None, span(0, 5)))
    log = a_log(commit(0), commit(1, "MERGE", text), commit(2, "OPTIMIZE", text))
    assert [dict(each.txns) for each in log.commits()] == [{}, {"rivermouth/orders": 1}, {}]


@pytest.mark.parametrize("version", [0, 3, 29, 149])
def test_what_came_after_a_version_is_found_however_much_it_is(version: int) -> None:
    log = a_log(*(commit(n) for n in range(150)))
    found = [each.version for each in log.commits_after(version)]
    assert found == list(range(version + 1, 150))


def test_after_a_write_only_the_newest_commits_are_asked_for() -> None:
    session = Session(*(commit(n) for n in range(3000)))
    log = CatalogLog(cast(SparkSession, session), ADDRESS)
    assert [each.version for each in log.commits_after(2998)] == [2999]
    assert session.limits == [20]


def test_backwards_the_history_is_asked_for_in_pieces_as_far_as_it_is_read() -> None:
    session = Session(*(commit(n) for n in range(3000)))
    newest_first = CatalogLog(cast(SparkSession, session), ADDRESS).commits_backwards()
    assert [each.version for each in islice(newest_first, 20)] == [*range(2999, 2979, -1)]
    assert session.limits == [20]
    assert [each.version for each in islice(newest_first, 180)] == [*range(2979, 2799, -1)]
    assert session.limits == [20, 200]


def test_backwards_no_version_comes_twice_while_others_commit() -> None:
    session = Session(*(commit(n) for n in range(100)))
    log = CatalogLog(cast(SparkSession, session), ADDRESS)
    found: list[int] = []
    for each in log.commits_backwards():
        if len(found) in (10, 20):  # between the answers and in the middle of one
            session._commits = (*session._commits, commit(len(session._commits)))
        found.append(each.version)
    assert found == [*range(99, -1, -1)]


def test_a_table_that_is_not_there_has_no_commits_at_a_start() -> None:
    assert list(a_log(fault=PySparkException(MISSING)).commits()) == []


def read_back(log: CatalogLog) -> object:
    return list(log.commits_after(3))


def start(log: CatalogLog) -> object:
    return list(log.commits())


@pytest.mark.parametrize("read", [start, read_back])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (PySparkException("[INTERNAL_ERROR] no\nmore"), LogUnreadable),
        (PySparkException("[SCHEMA_NOT_FOUND] no"), LogUnreadable),
        (Py4JNetworkError("Answer from Java side is empty"), BatchFailed),
        (Py4JError("An error occurred while calling o1.sql"), BatchFailed),
        (ConnectionRefusedError(111, "Connection refused"), BatchFailed),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_answer_that_does_not_come_is_an_error_of_ours_and_no_empty_history(
    fault: Exception, error: type[RivermouthError], read: Callable[[CatalogLog], object]
) -> None:
    with pytest.raises(error) as caught:
        read(a_log(fault=fault))
    assert caught.value.found


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (a_log(fault=PySparkException(MISSING)), LogUnreadable),
        (a_log(commit(0), commit(1)), LedgerBroken),
    ],
    ids=["dropped", "created again"],
)
def test_a_table_that_was_dropped_after_a_write_tells_nothing_of_the_write(
    log: CatalogLog, error: type[RivermouthError]
) -> None:
    with pytest.raises(error):
        read_back(log)


def test_a_history_tells_how_many_rows_a_delete_took() -> None:
    log = a_log(commit(0, "CREATE TABLE"), commit(1, "DELETE"), commit(2))
    assert [each.deleted_rows for each in log.commits()] == [None, 3, None]
