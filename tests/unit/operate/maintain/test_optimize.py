"""How long a table keeps old files, and which quarantine rows can never come true any more."""

from __future__ import annotations

import pytest

from rivermouth.operate.optimize import hours, orphaned

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        (None, 168),
        ("interval 7 days", 168),
        ("interval 1 week", 168),
        ("INTERVAL 48 HOURS", 48),
        ("interval 1 day 12 hours", 36),
        ("interval 90 minutes", 1.5),
        ("interval 0 hours", 0),
        ("interval 900000 milliseconds", 0.25),
        ("30 days", 720),
        ("soon", 0),
        ("", 0),
        ("interval", 0),
        ("interval 2 months", 0),
        ("interval 2 months 7 days", 0),
        ("interval -7 days", 0),
    ],
)
def test_a_retention_in_hours_and_0_for_what_nobody_understands(
    retention: str | None, expected: float
) -> None:
    assert hours(retention) == expected


@pytest.mark.parametrize(
    ("tags", "committed", "expected"),
    [
        ([], {1: "a"}, set()),
        ([(1, "a")], {1: "a"}, set()),
        ([(1, "a"), (1, "dead")], {1: "a"}, {"dead"}),
        ([(1, "dead"), (1, "dead too")], {1: "a"}, {"dead", "dead too"}),
        ([(2, "unborn")], {1: "a"}, set()),
        ([(1, "forgotten")], {}, set()),
    ],
    ids=[
        "no rows at all",
        "a commit that stands",
        "one of two attempts stands",
        "none of two attempts stands",
        "the number is still to be committed",
        "nobody knows the number any longer",
    ],
)
def test_an_orphan_has_a_number_that_stands_under_another_commit(
    tags: list[tuple[int, str]], committed: dict[int, str], expected: set[str]
) -> None:
    assert orphaned(tags, committed) == expected
