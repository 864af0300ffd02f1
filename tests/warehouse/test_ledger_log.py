"""What every ledger log promises, wherever its table lies."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice

import pytest

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import app_id, entry_of
from rivermouth.protocol.entry import Entry
from tests.builders import PIPELINE, entry_after, replayed, span
from tests.warehouse.conftest import CATALOG, FOLDER, MEMORY, MEMORY_CATALOG, Schema
from tests.warehouse.tables import InCatalog, InFolder, InMemory, SomeTable

FIRST = entry_after(None, span(0, 5))
SECOND = entry_after(FIRST, span(5, 8))
THIRD = entry_after(SECOND, span(8, 9))


Made = Callable[[], SomeTable]


@pytest.fixture(scope="module", params=[MEMORY, MEMORY_CATALOG, FOLDER, CATALOG])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Makes tables that are still to be created."""
    if request.param == "folder":
        return lambda: InFolder(tmp_path_factory.mktemp("warehouse") / "a b" / "tü")
    if request.param == "catalog":
        schema: Schema = request.getfixturevalue("schema")
        names = (f"orders_{n}" for n in count())
        return lambda: in_catalog(schema, next(names))
    return lambda: InMemory(tells_txn=request.param == "memory")


def in_catalog(schema: Schema, name: str) -> InCatalog:
    return InCatalog(schema.session, schema.address(name), schema.folder / name)


@pytest.fixture
def table(made: Made) -> SomeTable:
    """A table that is still to be created."""
    return made()


def with_entries(table: SomeTable) -> SomeTable:
    """Version 1 and 3 are entries; 2 is somebody else's."""
    table.create()
    table.wrote(FIRST)
    table.others()
    table.wrote(SECOND)
    return table


@pytest.fixture(scope="module")
def standing(made: Made) -> SomeTable:
    """A table with entries, to be read only."""
    return with_entries(made())


@pytest.fixture
def written(made: Made) -> SomeTable:
    """A table with entries, to be changed."""
    return with_entries(made())


def versions(table: SomeTable) -> list[int]:
    return [each.version for each in table.log().commits()]


def entries(table: SomeTable) -> dict[int, Entry]:
    found = ((each.version, entry_of(each, PIPELINE)) for each in table.log().commits())
    return {version: entry for version, entry in found if entry is not None}


def test_where_there_is_no_table_there_are_no_commits(table: SomeTable) -> None:
    assert [*table.log().commits()] == []
    assert [*table.log().commits_backwards()] == []
    with pytest.raises((LogUnreadable, LedgerBroken)):
        table.log().table(app_id(PIPELINE))


def test_commits_come_in_order_and_entries_as_they_were_written(standing: SomeTable) -> None:
    assert versions(standing) == [0, 1, 2, 3]
    assert entries(standing) == {1: FIRST, 3: SECOND}
    txns = [dict(each.txns) for each in standing.log().commits()]
    assert txns == [{}, {app_id(PIPELINE): 1}, {}, {app_id(PIPELINE): 2}]
    assert replayed(standing.log().commits()).faults == ()


def test_commits_have_times_that_do_not_go_back(standing: SomeTable) -> None:
    times = [each.timestamp_ms for each in standing.log().commits()]
    assert times == sorted(times)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_what_came_after_a_version_is_told_in_order(standing: SomeTable, version: int) -> None:
    found = [each.version for each in standing.log().commits_after(version)]
    assert found == [each for each in (1, 2, 3) if each > version]


def test_a_handle_sees_what_is_committed_after_it_was_made(written: SomeTable) -> None:
    log = written.log()
    assert [*log.commits_after(3)] == []
    written.wrote(THIRD)
    [found] = log.commits_after(3)
    assert (found.version, entry_of(found, PIPELINE)) == (4, THIRD)
    assert [each.version for each in log.commits()] == [0, 1, 2, 3, 4]


def test_a_stale_entry_makes_no_commit(standing: SomeTable) -> None:
    standing.wrote(entry_after(FIRST, span(5, 6)))
    standing.wrote(FIRST)
    assert versions(standing) == [0, 1, 2, 3]


def test_commits_come_backwards_as_far_as_is_asked(standing: SomeTable) -> None:
    log = standing.log()
    assert [*log.commits_backwards()] == [*log.commits()][::-1]
    assert [each.version for each in islice(log.commits_backwards(), 2)] == [3, 2]


def test_what_clean_up_left_is_read_from_where_it_begins(written: SomeTable) -> None:
    written.clean_up([0, 1, 2])
    assert versions(written) == [3]
    assert entries(written) == {3: SECOND}
    assert [each.version for each in written.log().commits_backwards()] == [3]
    written.wrote(THIRD)
    assert [each.version for each in written.log().commits_after(3)] == [4]
    assert replayed(written.log().commits()).faults == ()


def test_the_txn_is_told_whatever_clean_up_took_or_never(written: SomeTable) -> None:
    written.others()

    def told(pipeline: str) -> int | None:
        return written.log().table(app_id(pipeline)).txn

    assert told(PIPELINE) == (2 if written.tells_txn else None)
    assert told("nobody") == (0 if written.tells_txn else None)
    written.clean_up([0, 1, 2, 3])
    assert entries(written) == {}
    assert told(PIPELINE) == (2 if written.tells_txn else None)


def test_a_restore_is_one_more_commit_and_leaves_the_txn(written: SomeTable) -> None:
    written.restore(1)
    assert versions(written) == [0, 1, 2, 3, 4]
    history = replayed(written.log().commits())
    assert [each.version for each in history.rolled_back_by] == [4]
    assert history.effective == 1
    if written.tells_txn:
        assert written.log().table(app_id(PIPELINE)).txn == 2


def test_a_table_keeps_its_id_until_another_one_takes_its_place(written: SomeTable) -> None:
    first = written.log().table(app_id(PIPELINE)).table_id
    written.others()
    written.restore(1)
    assert written.log().table(app_id(PIPELINE)).table_id == first
    written.drop()
    assert [*written.log().commits()] == []
    written.create()
    assert written.log().table(app_id(PIPELINE)).table_id != first
    assert versions(written) == [0]


def test_a_commit_without_records_tells_no_time_of_one(standing: SomeTable) -> None:
    assert standing.log().newest_record_ms(1) is None


def test_the_log_is_kept_for_thirty_days_where_no_property_says_otherwise(
    standing: SomeTable,
) -> None:
    assert standing.log().table(app_id(PIPELINE)).retention_s == 30 * 86400
