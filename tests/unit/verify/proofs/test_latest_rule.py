"""The fold of an upsert, as its rule says it; cases by hand, and against a slow model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verify.proofs.latest_rule import Change, fold, rank

pytestmark = pytest.mark.unit

Fact = tuple[int, int, int, "int | None", bool]  # entry, partition, offset, order, tombstone


def change(fact: Fact) -> Change:
    entry, partition, offset, order, tombstone = fact
    return Change(entry, ("t", partition), offset, (order,), 0, None if tombstone else b"{}")


CASES: dict[str, tuple[Sequence[Fact], tuple[int, int] | None]] = {
    "no record": ([], None),
    "one record": ([(0, 0, 0, 1, False)], (0, 0)),
    "a tombstone alone": ([(0, 0, 0, None, True)], None),
    "the greater order wins over the later offset": (
        [(0, 0, 0, 2, False), (0, 0, 1, 1, False)],
        (0, 0),
    ),
    "null is lowest": ([(0, 0, 0, -9, False), (0, 0, 1, None, False)], (0, 0)),
    "of equals, the later offset": ([(0, 0, 0, 1, False), (0, 0, 1, 1, False)], (0, 1)),
    "of equals, the greater partition": ([(0, 0, 9, 1, False), (0, 1, 0, 1, False)], (1, 0)),
    "a lower rank in a later entry does not win": (
        [(0, 0, 0, 2, False), (1, 0, 1, 1, False)],
        (0, 0),
    ),
    "after a tombstone a lower rank stands": (
        [(0, 0, 0, 2, False), (1, 0, 1, None, True), (1, 0, 2, 1, False)],
        (0, 2),
    ),
    "a record before the tombstone of its own entry goes": (
        [(0, 0, 0, 2, False), (0, 0, 1, None, True)],
        None,
    ),
    "in one entry, another partition outlives a tombstone": (
        [(0, 0, 0, None, True), (0, 1, 0, 2, False)],
        (1, 0),
    ),
    "in a later entry, a tombstone deletes a row of another partition": (
        [(0, 1, 0, 2, False), (1, 0, 0, None, True)],
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_fold_leaves_the_row_that_the_rule_says(case: str) -> None:
    facts, expected = CASES[case]
    standing = fold([change(each) for each in reversed(facts)], 0, certain=True)
    row = standing.row
    assert (row and (row.place[1], row.offset)) == expected
    assert standing.certain


@pytest.mark.parametrize(
    ("facts", "dark_until", "certain"),
    [
        ([(0, 0, 5, 1, False)], 1, False),
        ([(0, 0, 5, 1, False), (1, 0, 6, 2, False)], 1, False),
        ([(0, 0, 5, 1, False), (1, 0, 6, None, True)], 1, True),
        ([(0, 0, 5, None, True)], 1, False),
    ],
)
def test_only_a_tombstone_after_the_dark_entries_makes_a_key_certain(
    facts: Sequence[Fact], dark_until: int, certain: bool
) -> None:
    standing = fold([change(each) for each in facts], dark_until, certain=False)
    assert standing.certain is certain


def test_nan_ranks_above_every_number_and_null_below() -> None:
    values = [None, float("-inf"), 0.0, float("inf"), float("nan")]
    ranks = [rank((each,), ("t", 0), 0) for each in values]
    assert ranks == sorted(ranks)
    assert len({*map(str, ranks)}) == len(values)


def slow(changes: Sequence[Change]) -> Change | None:
    """The rule again, one record after the other, without sorting or grouping."""
    row: Change | None = None
    for entry in sorted({each.entry for each in changes}):
        batch = [each for each in changes if each.entry == entry]
        graves = [each for each in batch if each.value is None]
        alive = [
            each
            for each in batch
            if each.value is not None
            and not any(g.place == each.place and g.offset > each.offset for g in graves)
        ]
        if graves:
            row = None
        for each in alive:
            if row is None or each.rank > row.rank:
                row = each
    return row


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 1),
            st.none() | st.integers(0, 2),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_the_fold_agrees_with_a_slow_model(
    drawn: list[tuple[int, int, int | None, bool]],
) -> None:
    ordered = sorted(drawn, key=lambda each: each[0])
    changes = [
        change((entry, partition, offset, order, tombstone))
        for offset, (entry, partition, order, tombstone) in enumerate(ordered)
    ]
    assert fold(changes, 0, certain=True).row == slow(changes)
