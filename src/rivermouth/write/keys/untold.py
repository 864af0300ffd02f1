"""Values that events do not tell, since they have not changed: which rows tell them.

A row gets the value of the newest earlier row of its key that tells it: of one in the batch, or of
the one that stands. None comes from before a deletion. Where no row tells it, what the event has in
its place stays. ``write.shapes.by_key`` does the same in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rivermouth.formats.arrow import listed
from rivermouth.write.keys.settle import (
    NONE,
    Changes,
    Folded,
    Integers,
    Mask,
    Rank,
    alive_of,
    groups_of,
    mask,
)


@dataclass(frozen=True)
class Untold:
    """Of ``groups`` the newest row does not tell all values; the others are in their order.

    ``lacks``: which rows do not tell a column. ``tells``: the newest entry that tells it for them,
    and came after all deletions. ``floor`` is the newest deletion. ``NONE``: there is none.
    """

    groups: Integers
    floor: Integers
    lacks: Mapping[str, Mask]
    tells: Mapping[str, Integers]

    @property
    def entries(self) -> Integers:
        """All entries that decide about values, each once."""
        every: Integers = np.unique(np.concatenate([self.floor, *self.tells.values()]))
        return every[every > NONE]


def untold(changes: Changes, found: Folded, these: Integers, *, apart: bool) -> Untold:
    """For ``these`` groups, each of which has a newest row; ``found``: see ``settle.latest``."""
    none = np.empty(0, np.int64)
    if changes.kept is None or not len(these):
        return Untold(none, none, {}, {})
    lists = changes.kept.take(pa.array(found.newest[these]))
    partial = mask(lists.is_valid())
    if not partial.any():
        return Untold(none, none, {}, {})
    these, lists = these[partial], lists.filter(pa.array(partial))
    first, group = groups_of(changes, apart=apart)
    place = np.full(len(first), NONE)
    place[these] = np.arange(len(these))
    ranked = Rank(changes).sorted(np.flatnonzero(alive_of(changes, group) & (place[group] != NONE)))
    of, gone, rank = place[group[ranked]], changes.gone[ranked], np.arange(len(ranked))

    def newest(entries: Mask) -> Integers:
        best = np.full(len(these), NONE)
        best[of[entries]] = rank[entries]  # of several in one group the last assignment stays
        return best

    floor, tells, lacks = newest(gone), dict[str, Integers](), dict[str, Mask]()
    after, kept = ~gone & (rank > floor[of]), changes.kept.take(pa.array(ranked))
    for name in lists.flatten().unique().to_pylist():
        lacks[name] = mask(listed(lists, name))
        best = newest(after & ~mask(listed(kept, name)))
        tells[name] = _entries(ranked, np.where(lacks[name], best, NONE))
    return Untold(these, _entries(ranked, floor), lacks, tells)


def _entries(ranked: Integers, ranks: Integers) -> Integers:
    return np.where(ranks == NONE, NONE, ranked[ranks])
