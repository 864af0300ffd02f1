"""The rule of the first row per key: cases by hand, and against a slow model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verify.proofs.key_rules import Change, rank
from rivermouth.verify.proofs.keyed import First

pytestmark = pytest.mark.unit

Fact = tuple[int, int, int]  # entry, partition, offset


def change(fact: Fact) -> Change:
    entry, partition, offset = fact
    return Change(entry, ("t", partition), offset, (), 0, b"{}")


CASES: dict[str, tuple[Sequence[Fact], Fact | None]] = {
    "no record": ([], None),
    "one record": ([(0, 0, 5)], (0, 0, 5)),
    "the earlier offset": ([(0, 0, 5), (0, 0, 6)], (0, 0, 5)),
    "in one entry, the lower partition": ([(0, 1, 2), (0, 0, 5)], (0, 0, 5)),
    "the earlier entry, whatever its partition": ([(0, 1, 9), (1, 0, 2)], (0, 1, 9)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rule_leaves_the_first_row(case: str) -> None:
    facts, expected = CASES[case]
    found = First().expected([change(each) for each in reversed(facts)], 0, certain=True)
    assert found.row == (expected and change(expected))
    assert found.certain
    assert found.stays == bool(facts)


@pytest.mark.parametrize("certain", [True, False])
def test_no_record_makes_a_key_certain_since_an_earlier_one_would_win(certain: bool) -> None:
    assert First().expected([change((3, 0, 9))], 2, certain=certain).certain is certain


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
def test_the_rule_agrees_with_a_slow_model(drawn: list[tuple[int, int]]) -> None:
    changes = [change((entry, part, at)) for at, (entry, part) in enumerate(sorted(drawn))]
    row: Change | None = None
    for entry in range(4):
        batch = [each for each in changes if each.entry == entry]
        for each in sorted(batch, key=lambda one: (one.partition, one.offset)):
            row = row or each
    assert First().expected(changes[::-1], 0, certain=True).row == row
