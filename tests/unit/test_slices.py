"""Twenty slices together are everything that ``make test-all`` has beyond ``make test``."""

from __future__ import annotations

import pytest

from tests.slices import SLICES, in_slice

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("count", [0, 1, 19, 20, 21, 157])
def test_each_group_is_in_one_slice(count: int) -> None:
    groups = {f"tests/kafka/test_{n}.py" for n in range(count)}
    slices = [in_slice(number, groups) for number in range(SLICES)]
    assert frozenset[str]().union(*slices) == groups
    assert sum(map(len, slices)) == count


def test_slices_are_of_about_the_same_size() -> None:
    sizes = {len(in_slice(number, {str(n) for n in range(57)})) for number in range(SLICES)}
    assert sizes == {2, 3}
