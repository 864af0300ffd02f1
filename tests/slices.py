"""What ``make test-all`` has beyond ``make test``, in twenty slices: CI runs one each time."""

from __future__ import annotations

from collections.abc import Collection

SLICES = 20


def in_slice(number: int, groups: Collection[str]) -> frozenset[str]:
    """Those of the groups of tests that belong to the slice of this number, from 0.

    Neighbours, which often take equally long, are in different slices.
    """
    return frozenset(sorted(groups)[number::SLICES])
