"""The rules of the newest and of the first row per key: by hand, and against slow models."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verification.proofs.key_rules import Change, rank
from rivermouth.verification.proofs.keyed import First, Latest

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
    "after a tombstone a lower rank wins": (
        [(0, 0, 0, 2, False), (1, 0, 1, None, True), (1, 0, 2, 1, False)],
        (0, 2),
    ),
    "a record before the tombstone of its own entry does not count": (
        [(0, 0, 0, 2, False), (0, 0, 1, None, True)],
        None,
    ),
    "in one entry, a tombstone does not remove records of another partition": (
        [(0, 0, 0, None, True), (0, 1, 0, 2, False)],
        (1, 0),
    ),
    "in a later entry, a tombstone deletes a row of another partition": (
        [(0, 1, 0, 2, False), (1, 0, 0, None, True)],
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rule_leaves_the_newest_row(case: str) -> None:
    facts, expected = CASES[case]
    found = Latest(ordered=True).expected(
        [change(each) for each in reversed(facts)], 0, certain=True
    )
    row = found.row
    assert (row and (row.partition[1], row.offset)) == expected
    assert found.certain


@pytest.mark.parametrize(
    ("readable_from", "ordered", "certain"),
    [(1, False, True), (1, True, False), (2, False, False)],
    ids=["it replaces", "its rank decides", "before it, more is lost"],
)
def test_a_winner_that_always_replaces_settles_what_was_before_it(
    readable_from: int, ordered: bool, certain: bool
) -> None:
    facts = [change((1, 0, 7, None, False))]
    rule = Latest(ordered=ordered)
    assert rule.expected(facts, readable_from, certain=False).certain is certain


@pytest.mark.parametrize(
    ("ordered", "expected"),
    [(True, (1, 0)), (False, (0, 7))],
    ids=["by rank", "the later entry"],
)
def test_without_order_a_key_that_moved_to_a_lower_partition_has_its_newest_row(
    ordered: bool, expected: tuple[int, int]
) -> None:
    facts = [(0, 1, 0, None, False), (1, 0, 7, None, False)]
    rule = Latest(ordered=ordered)
    row = rule.expected([change(each) for each in facts], 0, certain=True).row
    assert row is not None
    assert (row.partition[1], row.offset) == expected


def test_within_one_entry_the_rank_decides_also_without_order() -> None:
    facts = [(0, 1, 0, None, False), (0, 0, 7, None, False)]
    row = Latest(ordered=False).expected([change(each) for each in facts], 0, certain=True).row
    assert row is not None
    assert row.partition[1] == 1


@pytest.mark.parametrize(
    ("facts", "readable_from", "certain"),
    [
        ([(0, 0, 5, 1, False)], 1, False),
        ([(0, 0, 5, 1, False), (1, 0, 6, 2, False)], 1, False),
        ([(0, 0, 5, 1, False), (1, 0, 6, None, True)], 1, True),
        ([(0, 0, 5, None, True)], 1, False),
    ],
)
def test_only_a_tombstone_in_an_entry_that_kafka_still_holds_makes_a_key_certain(
    facts: Sequence[Fact], readable_from: int, certain: bool
) -> None:
    found = Latest(ordered=True).expected(
        [change(each) for each in facts], readable_from, certain=False
    )
    assert found.certain is certain


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
        tombstones = [each for each in batch if each.value is None]
        left = [
            each
            for each in batch
            if each.value is not None
            and not any(
                tomb.partition == each.partition and tomb.offset > each.offset
                for tomb in tombstones
            )
        ]
        if tombstones:
            row = None
        for each in left:
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
def test_the_rule_agrees_with_a_slow_model(
    drawn: list[tuple[int, int, int | None, bool]],
) -> None:
    ordered = sorted(drawn, key=lambda each: each[0])
    changes = [
        change((entry, partition, offset, order, tombstone))
        for offset, (entry, partition, order, tombstone) in enumerate(ordered)
    ]
    assert Latest(ordered=True).expected(changes, 0, certain=True).row == slow(changes)


# The first row


@pytest.mark.parametrize("certain", [True, False])
def test_no_record_makes_a_key_certain_since_an_earlier_one_would_win(certain: bool) -> None:
    changes = [change((3, 0, 9, None, False))]
    assert First().expected(changes, 2, certain=certain).certain is certain


@pytest.mark.parametrize(
    ("found", "may"),
    [((0, 4), True), ((0, 5), False), ((0, 6), False), ((1, 9), True)],
    ids=["earlier", "the same", "later", "of another partition"],
)
def test_only_a_record_that_may_have_come_earlier_may_have_left_its_row(
    found: tuple[int, int], may: bool
) -> None:
    partition, offset = found
    of = rank((), ("t", partition), offset)
    assert First().may_stand(of, rank((), ("t", 0), 5)) is may


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12))
def test_the_first_row_is_that_of_a_slow_model(drawn: list[tuple[int, int]]) -> None:
    """In one entry the lower partition is first; an earlier entry is, whatever its partition."""
    facts = [(entry, part, at, None, False) for at, (entry, part) in enumerate(sorted(drawn))]
    changes = [change(each) for each in facts]
    row: Change | None = None
    for entry in range(4):
        batch = [each for each in changes if each.entry == entry]
        for each in sorted(batch, key=lambda one: (one.partition, one.offset)):
            row = row or each
    found = First().expected(changes[::-1], 0, certain=True)
    assert (found.row, found.certain, found.stays) == (row, True, bool(changes))
