"""The guards of rows that land as files, switched off one by one: the test of each then fails.

The model does the same with all histories (``tests/faults/model/removals.py``). This is
the product itself, on a real table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.ways import Definition
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.write.files.bad_records import QuarantineTarget
from rivermouth.write.files.counting import Counted
from rivermouth.write.files.table import FilesTable
from rivermouth.write.files.writing import Written
from rivermouth.write.landings import driver_commits
from rivermouth.write.landings import files as landing
from rivermouth.write.landings.files import FilesLanding
from tests.spark import test_files, test_recording
from tests.spark.conftest import Bench
from tests.spark.files_table import made

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Patch = Callable[[pytest.MonkeyPatch], object]
REAL_LEFT = FilesLanding._left


@dataclass(frozen=True)
class Guard:
    """A guard: how to take it away, the test that then fails, what it is given, and by what it
    fails.
    """

    without: Patch
    test: Callable[..., None]
    given: tuple[tuple[str, str], ...] = ()
    seen: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)


def _any_version(patch: pytest.MonkeyPatch) -> None:
    """A commit is tried again at the version that follows on a rival's."""
    commit = FilesTable._commit

    def anywhere(self: FilesTable, made: Commit, *, following: bool) -> None:
        commit(self, made, following=False)

    patch.setattr(FilesTable, "_commit", anywhere)


def _whatever_waits(patch: pytest.MonkeyPatch) -> None:
    """Files that wait are committed for any ranges."""

    def left(self: FilesLanding, *_: object) -> Written | None:
        waiting, self._waiting = self._waiting, None
        return None if waiting is None else waiting.written

    patch.setattr(FilesLanding, "_left", left)


def _whatever_the_table_says(patch: pytest.MonkeyPatch) -> None:
    """Files that wait are committed though the table was altered since."""

    def left(
        self: FilesLanding, plan: CommitPlan, table: Definition, target: QuarantineTarget
    ) -> Written | None:
        return REAL_LEFT(self, plan, self._waiting.definition if self._waiting else table, target)

    patch.setattr(FilesLanding, "_left", left)


def _no_look_at_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Counted, "of", lambda _, ranges, where: (RowCounts(0, 0),) * len(ranges))


GUARDS = {
    "exactly the version that follows": Guard(
        _any_version,
        test_files.test_a_rival_that_commits_while_files_are_written_wins_and_nothing_is_doubled,
        (("point", "P17"),),
    ),
    "the txn is looked at": Guard(
        lambda patch: patch.setattr(FilesTable, "txn", lambda *_: 0),
        test_files.test_files_whose_commit_is_stale_are_not_committed,
    ),
    "an entry alone is exactly the version that follows": Guard(
        _any_version, test_recording.test_a_rival_that_comes_before_the_commit_or_in_it_wins
    ),
    "the txn is looked at for an entry alone": Guard(
        lambda patch: patch.setattr(FilesTable, "txn", lambda *_: 0),
        test_recording.test_an_entry_whose_plan_is_stale_is_not_committed,
    ),
    "an entry alone is left to Spark where the table is not understood": Guard(
        lambda patch: patch.setattr(driver_commits, "way_into", lambda known, *_: known),
        test_recording.test_a_table_that_asks_for_spark_gets_its_entries_through_it_until_it_no_longer_does,
    ),
    "what is not understood is left to Spark": Guard(
        lambda patch: patch.setattr(landing, "way_into", lambda known, *_: known),
        test_files.test_a_table_that_is_altered_between_batches_lands_through_spark_from_then_on,
    ),
    "files that wait are those of the ranges": Guard(
        _whatever_waits,
        test_files.test_files_that_waited_are_left_where_they_do_not_fit,
    ),
    "files that wait are of the same table": Guard(
        _whatever_the_table_says,
        test_files.test_files_that_waited_for_a_rival_are_committed_if_they_are_still_there,
    ),
    "files that wait are whole": Guard(
        lambda patch: patch.setattr(Written, "there", lambda *_: True),
        test_files.test_files_that_waited_are_left_where_they_do_not_fit,
        seen=(Py4JJavaError,),  # a query reads a file that is gone
    ),
    "a range has no more records than offsets": Guard(
        _no_look_at_counts,
        test_files.test_records_that_are_none_of_the_batch_are_not_committed,
    ),
}


@pytest.mark.short(
    ("name",),
    {("exactly the version that follows",)},
)
@pytest.mark.parametrize("name", GUARDS)
def test_without_this_guard_its_test_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    guard = GUARDS[name]
    guard.without(monkeypatch)
    asked = inspect.signature(guard.test).parameters
    given: dict[str, Any] = {"bench": bench, "monkeypatch": monkeypatch, **dict(guard.given)}
    if "table" in asked:
        given["table"] = made(bench)

    with pytest.raises(guard.seen):
        guard.test(**{each: given[each] for each in asked})
