"""What an append table should hold at any entry, from running sums over the records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import MODULUS, Digests, Integers, sum_of
from tests.faults.checker.erasure import Erasures
from tests.faults.checker.evidence import Place
from tests.faults.checker.ledger import Node, standing
from tests.faults.checker.records import Records


class Prefixes:
    """What snapshots at any entry should hold, from running sums over the records."""

    def __init__(
        self,
        node: Node | None,
        records: Mapping[Place, Records],
        erasures: Erasures,
    ) -> None:
        self._records = records
        self._erasures = erasures
        self._sums: dict[Place, tuple[Integers, Digests]] = {}
        for place, each in records.items():
            applied = each.kinds == Kind.GOOD
            for span in node.lost if node is not None else ():
                if span.place == place:
                    applied[slice(*each.between(span.start, span.until))] = False
            counts = np.cumsum(np.append(0, applied), dtype=np.int64)
            sums = np.cumsum(np.append(np.uint64(0), each.rows * applied), dtype=np.uint64)
            self._sums[place] = (counts, sums)

    def at(self, node: Node | None) -> tuple[int, int] | None:
        """Rows, and the sum of their digests, at an entry; None where nobody can tell."""
        count = total = 0
        if node is None:
            return count, total
        if node.torn or self._erasures.left(node):
            return None  # others took rows away, and nobody could prevent it
        for place in node.starts:
            start, until = node.starts[place], node.reached[place]
            each = self._records[place]
            if each.is_dark(start, until) and not _lost(node, each):
                return None
            first, last = each.between(start, until)
            counts, sums = self._sums[place]
            count += int(counts[last]) - int(counts[first])
            total += int(sums[last]) - int(sums[first])
        for before in standing(node):
            for place, indices in self._erasures.taken(before).items():
                count -= len(indices)
                total -= sum_of(self._records[place].rows[indices])
        return count, total % MODULUS


def _lost(node: Node, records: Records) -> bool:
    """Whether all that is dark was recorded as lost, so that it has left no row."""
    spans = [each for each in node.lost if each.place == records.place]
    return not records.thinned and all(
        any(span.start <= low and high <= span.until for span in spans)
        for low, high in records.dark
    )
