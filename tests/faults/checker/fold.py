"""The fold of an upsert, from its rule: which record's row each key should have.

Within an entry and a partition, a tombstone removes the records of its key that came before
it. Of what is left in the entry the greatest rank wins: (order_by, topic, partition, offset),
nulls lowest. A tombstone in the entry deletes the row that stood before; otherwise the winner
replaces that row if it ranks higher, or if there is no order_by. An event that deletes ranks as a
row does, and leaves none.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import MODULUS
from tests.faults.checker.entry import Span
from tests.faults.checker.erasure import Erasures
from tests.faults.checker.evidence import Place, real
from tests.faults.checker.ledger import Node, standing
from tests.faults.checker.records import Records

Ref = tuple[Place, int]
"""A record: its partition, and its index there."""


class Fold:
    """The rows that the standing entries leave; goes along the ledger, back and forth.

    ``rows`` maps the digest of a key to the record that should be its row, ``total`` is the
    sum of the digests of these rows. ``certain`` keys do not depend on records that Kafka had
    deleted before they could be read here; without such records (``dark``) all are.
    """

    def __init__(self, *, ordered: bool = True, erasures: Erasures | None = None) -> None:
        self.rows: dict[int, Ref] = {}
        self.total = 0
        self.dark = False
        self.certain: set[int] = set()
        self.sums: dict[Node | None, tuple[int, int]] = {None: (0, 0)}
        self._ordered = ordered
        self._erasures = erasures
        self._nodes: list[Node] = []
        self._changes: list[list[tuple[int, Ref | None]]] = []

    def move_to(self, node: Node | None, records: Mapping[Place, Records]) -> None:
        """Bring the rows to where they stand after ``node``."""
        if node is not None and self._nodes and node.before is self._nodes[-1]:
            self._apply(node, records)
            return
        path = standing(node)
        common = 0
        while common < min(len(path), len(self._nodes)) and path[common] is self._nodes[common]:
            common += 1
        while len(self._nodes) > common:
            self._undo(records)
        for each in path[common:]:
            self._apply(each, records)

    def rank(self, ref: Ref, records: Mapping[Place, Records]) -> tuple[bytes, Place, int]:
        """What the greatest of wins."""
        place, index = ref
        return records[place].orders[index], real(place), int(records[place].offsets[index])

    def _apply(self, node: Node, records: Mapping[Place, Records]) -> None:
        if node.erased:
            self._erase(node, records)
            return
        removed: set[int] = set()
        winners: dict[int, Ref] = {}
        spans = [span for span in node.entry.spans if span not in node.entry.lost]
        for span in spans:
            for key, ref in self._left(span, records[span.place], removed).items():
                best = winners.get(key)
                if best is None or self.rank(ref, records) > self.rank(best, records):
                    winners[key] = ref
        changes: list[tuple[int, Ref | None]] = []
        for key in removed | winners.keys():
            stood, new = self.rows.get(key), winners.get(key)
            beside = key not in removed and stood is not None
            if self._ordered and beside and new is not None:
                new = max(stood, new, key=lambda each: self.rank(each, records))
            if new is not None and records[new[0]].kinds[new[1]] == Kind.GONE:
                new = None
            if new != stood:
                changes.append((key, stood))
                self._set(key, new, records)
        self._stand(node, changes)
        if any(records[span.place].is_dark(span.start, span.until) for span in spans):
            self.dark, self.certain = True, set()
        elif self.dark:
            self.certain |= removed

    def _erase(self, node: Node, records: Mapping[Place, Records]) -> None:
        """The rows that others deleted on purpose are gone, if they stood."""
        taken = self._erasures.taken(node) if self._erasures is not None else {}
        refs = {(place, int(index)) for place, indices in taken.items() for index in indices}
        gone = [(key, ref) for key, ref in self.rows.items() if ref in refs]
        for key, _ in gone:
            self._set(key, None, records)
        self._stand(node, [(key, ref) for key, ref in gone])
        if self._erasures is not None and node in self._erasures.blind:
            self.dark, self.certain = True, set()

    def _stand(self, node: Node, changes: list[tuple[int, Ref | None]]) -> None:
        self._nodes.append(node)
        self._changes.append(changes)
        self.sums[node] = (len(self.rows), self.total)

    def _left(self, span: Span, records: Records, removed: set[int]) -> dict[int, Ref]:
        """The best record of each key that no later tombstone of the partition removes."""
        first, last = records.between(span.start, span.until)
        kinds, keys = records.kinds[first:last].tolist(), records.keys[first:last].tolist()
        best: dict[int, int] = {}
        orders = records.orders
        for index, (kind, key) in enumerate(zip(kinds, keys, strict=True), first):
            if kind == Kind.TOMBSTONE:
                removed.add(key)
                best.pop(key, None)
                continue
            # Of two that are equal the later offset wins.
            stands = kind in (Kind.GOOD, Kind.GONE)
            if stands and (key not in best or orders[index] >= orders[best[key]]):
                best[key] = index
        return {key: (span.place, index) for key, index in best.items()}

    def _set(self, key: int, ref: Ref | None, records: Mapping[Place, Records]) -> None:
        stood = self.rows.pop(key, None)
        if stood is not None:
            self.total -= int(records[stood[0]].rows[stood[1]])
        if ref is not None:
            self.rows[key] = ref
            self.total += int(records[ref[0]].rows[ref[1]])
        self.total %= MODULUS

    def _undo(self, records: Mapping[Place, Records]) -> None:
        self._nodes.pop()
        for key, stood in reversed(self._changes.pop()):
            self._set(key, stood, records)
        self.certain = set()
