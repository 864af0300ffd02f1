"""Pairs instead of products: of the cases of a product, those that ``make test`` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Shape = TypeVar("Shape")


def pairs(
    shapes: Sequence[Shape],
    points: Iterable[str],
    passes: Callable[[Shape, str], bool] = lambda shape, point: True,
) -> frozenset[tuple[Shape, str]]:
    """Each point with one of the shapes that pass it, the shapes in turn."""
    found = set[tuple[Shape, str]]()
    for number, point in enumerate(points):
        in_turn = (shapes[(number + each) % len(shapes)] for each in range(len(shapes)))
        found.add((next(shape for shape in in_turn if passes(shape, point)), point))
    return frozenset(found)
