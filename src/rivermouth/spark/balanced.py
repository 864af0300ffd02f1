"""Many things combined into one by a tree: engines go down a chain by recursion, and stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def balanced(combine: Callable[[T, T], T], items: Sequence[T]) -> T:
    """``items`` in their order, two at a time; at least one. As deep as their number has bits."""
    if len(items) == 1:
        return items[0]
    half = len(items) // 2
    return combine(balanced(combine, items[:half]), balanced(combine, items[half:]))
