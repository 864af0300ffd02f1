"""A commit as a plan, an entry in a commit, and the verdict on our own last write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rivermouth.protocol.commits import CommitRecord, Outcome, app_id, classify, entry_of
from rivermouth.protocol.entry import RowCounts
from tests.builders import PIPELINE, entry_after, foreign, plan_of, record_of_entry, span

pytestmark = pytest.mark.unit

FIRST = entry_after(None, span(0, 5))
OURS = entry_after(FIRST, span(5, 8))
PLAN = plan_of(OURS, base=1)
RIVAL_SAME = replace(OURS, commit="rival")
RIVAL_OTHER = replace(entry_after(FIRST, span(5, 7)), commit="rival")
LATER = replace(entry_after(RIVAL_OTHER, span(7, 9)), commit="rival 2")
BARE_TXN = CommitRecord(2, 0, "WRITE", {}, {app_id(PIPELINE): OURS.sequence}, None)
OTHER_PIPELINE = record_of_entry(2, replace(OURS, pipeline="other", commit="x"))


@pytest.mark.parametrize(
    ("name", "since", "outcome"),
    [
        ("nothing new", [], Outcome.ABSENT),
        ("only foreign commits", [foreign(2, "OPTIMIZE")], Outcome.ABSENT),
        ("another pipeline with our sequence", [OTHER_PIPELINE], Outcome.ABSENT),
        ("our commit", [record_of_entry(2, OURS)], Outcome.COMMITTED),
        (
            "ours among foreign ones",
            [foreign(2, "OPTIMIZE"), record_of_entry(3, OURS), foreign(4, "VACUUM END")],
            Outcome.COMMITTED,
        ),
        (
            "ours, and a rival who followed on",
            [record_of_entry(2, OURS), record_of_entry(3, entry_after(OURS, span(8, 9)))],
            Outcome.COMMITTED,
        ),
        (
            "a rival with the same range",
            [record_of_entry(2, RIVAL_SAME)],
            Outcome.ALREADY_COMMITTED,
        ),
        ("a rival with another range", [record_of_entry(2, RIVAL_OTHER)], Outcome.SUPERSEDED),
        (
            "a rival who is two ahead",
            [record_of_entry(2, RIVAL_OTHER), record_of_entry(3, LATER)],
            Outcome.SUPERSEDED,
        ),
        ("a txn of ours without an entry", [BARE_TXN], Outcome.SUPERSEDED),
    ],
)
def test_our_write_is_judged_on_the_log_alone(
    name: str, since: list[CommitRecord], outcome: Outcome
) -> None:
    assert classify(PLAN, since) is outcome, name


Change = Callable[[CommitRecord], CommitRecord]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("no metadata", lambda record: replace(record, user_metadata=None)),
        ("metadata of others", lambda record: replace(record, user_metadata="hello")),
        ("no txn: a session conf stamped it", lambda record: replace(record, txns={})),
        ("the txn of others", lambda record: replace(record, txns={"rivermouth/else": 2})),
    ],
)
def test_a_commit_carries_an_entry_only_with_its_txn(name: str, change: Change) -> None:
    record = record_of_entry(2, OURS)
    assert entry_of(record, PIPELINE) == OURS
    assert entry_of(change(record), PIPELINE) is None, name


def test_a_plan_becomes_an_entry_with_the_counts_that_are_known() -> None:
    counts = (RowCounts(2, 1),)
    assert PLAN.entry(counts) == replace(OURS, base=1, rows=counts)
    assert PLAN.entry() == replace(OURS, base=1, rows=None)
    assert PLAN.empty_entry() == replace(OURS, base=1, rows=(RowCounts(0, 0),))
    with pytest.raises(ValueError, match="2 counts for 1 ranges"):
        PLAN.entry(counts * 2)


def test_another_attempt_covers_the_same_ranges_under_the_same_sequence() -> None:
    again = PLAN.again("another", 4)
    assert (again.commit, again.base) == ("another", 4)
    assert (again.purpose, again.draft, again.sequence) == (PLAN.purpose, PLAN.draft, 2)
