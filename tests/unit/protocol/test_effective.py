"""Which entry was in effect at which version, as far as the log tells."""

from __future__ import annotations

import pytest

from rivermouth.protocol.history import NOTHING, Effective, Marks, effective_at, known_before

pytestmark = pytest.mark.unit

FIRST = Effective(1, NOTHING)
SECOND = Effective(2, FIRST)
# From version 2 on nothing, from 4 on entry 1, from 7 on nobody knows, from 9 on entry 2.
MARKS = Marks(9, SECOND, Marks(7, None, Marks(4, FIRST, Marks(2, NOTHING))))


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (9, SECOND),
        (12, SECOND),
        ("9", SECOND),
        (8, None),
        (7, None),
        (6, FIRST),
        (4, FIRST),
        (3, NOTHING),
        (2, NOTHING),
        (1, None),
        (None, None),
        ("", None),
        ("2026-11-21", None),
        (-1, None),
    ],
)
def test_a_restore_leaves_in_effect_what_was_so_at_its_version(
    version: object, found: Effective | None
) -> None:
    assert effective_at(MARKS, version) == found
    assert effective_at(None, version) is None


def test_an_entry_rests_on_those_before_it_and_not_on_nothing() -> None:
    assert [each.sequence for each in SECOND.chain()] == [2, 1]
    assert [*NOTHING.chain()] == []


@pytest.mark.parametrize(
    ("before", "version"), [(12, 11), (10, 9), (9, 4), (8, 4), (7, 6), (5, 4), (3, 2), (2, None)]
)
def test_the_way_back_leads_to_the_newest_version_of_which_the_log_tells(
    before: int, version: int | None
) -> None:
    assert known_before(MARKS, before) == version
    assert known_before(None, before) is None
