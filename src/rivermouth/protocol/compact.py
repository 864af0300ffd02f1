"""Lists of numbers, written short: for entries with thousands of partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def runs(numbers: Sequence[int]) -> list[int]:
    """Ascending numbers as the first and the last of each run: ``0, 1, 2, 7`` is ``[0,2,7,7]``."""
    found: list[int] = []
    for each in numbers:
        if found and each == found[-1] + 1:
            found[-1] = each
        else:
            found += [each, each]
    return found


def from_runs(told: Sequence[int], most: int) -> list[int]:
    """The inverse of ``runs``. Raises ValueError for more than ``most`` numbers, or where they are
    not ascending.
    """
    found: list[int] = []
    for first, last in zip(told[::2], told[1::2], strict=True):
        if not 0 <= number(first) <= number(last):
            raise ValueError(f"not a run of partitions: {first} to {last}")
        if last - first >= most - len(found) or (found and first <= found[-1]):
            raise ValueError(f"partitions that do not fit: {first} to {last}")
        found += range(first, last + 1)
    return found


def packed(numbers: Sequence[int | None]) -> int | list[int | None] | None:
    """The numbers; where all are equal, that number alone."""
    return numbers[0] if numbers and len({*numbers}) == 1 else [*numbers]


def unpacked(told: object, count: int) -> list[int | None]:
    """The inverse of ``packed``: ``count`` numbers. Raises ValueError."""
    listed = told if isinstance(told, list) else [told] * count
    if len(listed) != count:
        raise ValueError(f"{len(listed)} numbers for {count} partitions")
    return [None if each is None else number(each) for each in listed]


def number(value: object) -> int:
    """A value of JSON that is a whole number. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"not a whole number: {value!r}")
    return value
