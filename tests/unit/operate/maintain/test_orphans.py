"""Which commits of quarantine rows can never come true any more."""

from __future__ import annotations

import pytest

from rivermouth.operate.optimize import orphaned

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("tags", "standing", "expected"),
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
    tags: list[tuple[int, str]], standing: dict[int, str], expected: set[str]
) -> None:
    assert orphaned(tags, standing) == expected
