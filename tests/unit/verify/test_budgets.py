"""What takers can draw of givers that have a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rivermouth.verify.ledger.erased import Budgets

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "amounts", "asked", "drawn"),
    [
        ("no giver", {1: 5}, [([], 2)], [0]),
        ("less than there is", {1: 5}, [([1], 2)], [2]),
        ("more than there is", {1: 5}, [([1], 7)], [5]),
        ("two takers share one", {1: 5}, [([1], 3), ([1], 3)], [3, 2]),
        ("of two givers", {1: 2, 2: 2}, [([1, 2], 3), ([1, 2], 3)], [3, 1]),
        ("no limit", {1: None}, [([1], 9), ([1], 9)], [9, 9]),
        ("the first makes room", {1: 2, 2: 2}, [([1, 2], 2), ([1], 2)], [2, 2]),
        ("it makes all the room it can", {1: 2, 2: 1}, [([1, 2], 2), ([1], 2)], [2, 1]),
        (
            "over two",
            {1: 1, 2: 1, 3: 1},
            [([1, 2], 1), ([2, 3], 1), ([1], 1), ([2], 1)],
            [1, 1, 1, 0],
        ),
    ],
)
def test_as_much_is_drawn_as_the_givers_have(
    name: str,
    amounts: Mapping[int, int | None],
    asked: Sequence[tuple[Sequence[int], int]],
    drawn: Sequence[int],
) -> None:
    budgets = Budgets(amounts)
    each = [budgets.draw(taker, givers, most) for taker, (givers, most) in enumerate(asked)]
    assert each == drawn, name
