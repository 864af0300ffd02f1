"""What was found in records: a tree of arrays, with an element for each value.

``None`` stands for values of which nothing is to be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rivermouth.formats.shredded.lanes import Ints


@dataclass(frozen=True)
class Numbers:
    """Whole numbers."""

    values: Ints


@dataclass(frozen=True)
class Spans:
    """Where values stand among the bytes of all records."""

    starts: Ints
    lengths: Ints


@dataclass(frozen=True)
class Group:
    """Values that stand together: one array for each field, all of one length."""

    fields: tuple[Found | None, ...]


@dataclass(frozen=True)
class Choice:
    """One of several kinds of value. ``of`` has those of each kind, in their order."""

    branch: Ints
    of: tuple[Found | None, ...]


@dataclass(frozen=True)
class Many:
    """``counts`` values in each place, all of them one after the other."""

    counts: Ints
    of: Found | None


Found = Numbers | Spans | Group | Choice | Many


def spans_of(found: Found | None) -> Spans:
    """What was found, where that is spans."""
    assert isinstance(found, Spans)
    return found


def taken(found: Found | None, at: NDArray[Any]) -> Found | None:
    """The elements at those indices, in that order."""
    if found is None:
        return None
    if isinstance(found, Numbers):
        return Numbers(found.values[at])
    if isinstance(found, Spans):
        return Spans(found.starts[at], found.lengths[at])
    if isinstance(found, Group):
        return Group(tuple(taken(each, at) for each in found.fields))
    if isinstance(found, Choice):
        return _taken_of_choice(found, at)
    starts = np.cumsum(found.counts) - found.counts
    counts = found.counts[at]
    return Many(counts, taken(found.of, ranges(starts[at], counts)))


def _taken_of_choice(found: Choice, at: NDArray[Any]) -> Choice:
    branch, ranks = found.branch[at], np.zeros(len(found.branch), np.int64)
    of = []
    for number, each in enumerate(found.of):
        its = found.branch == number
        ranks[its] = np.arange(np.count_nonzero(its))
        of.append(taken(each, ranks[at[branch == number]]))
    return Choice(branch, tuple(of))


def ranges(starts: Ints, counts: Ints) -> Ints:
    """All numbers from each start on, so many of each."""
    begins = np.cumsum(counts) - counts
    made: Ints = np.arange(int(counts.sum())) + np.repeat(starts - begins, counts)
    return made


def joined(parts: Sequence[Found | None]) -> Found | None:
    """The elements of all parts, which are of one kind. There is at least one part."""
    first = parts[0]
    if first is None or len(parts) == 1:
        return first
    if isinstance(first, Numbers):
        return Numbers(_all(parts, "values"))
    if isinstance(first, Spans):
        return Spans(_all(parts, "starts"), _all(parts, "lengths"))
    if isinstance(first, Group):
        return Group(_each(parts, "fields"))
    if isinstance(first, Choice):
        return Choice(_all(parts, "branch"), _each(parts, "of"))
    inner = joined([each.of for each in parts if isinstance(each, Many)])
    return Many(_all(parts, "counts"), inner)


def _all(parts: Sequence[Any], name: str) -> Ints:
    whole: Ints = np.concatenate([getattr(each, name) for each in parts])
    return whole


def _each(parts: Sequence[Any], name: str) -> tuple[Found | None, ...]:
    return tuple(joined(each) for each in zip(*(getattr(e, name) for e in parts), strict=True))
