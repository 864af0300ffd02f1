"""An append table: each visible record is one row or lies in quarantine, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import MODULUS, Digests, Integers
from tests.faults.checker.evidence import Place, Watched, shown
from tests.faults.checker.ledger import Node
from tests.faults.checker.log import Log
from tests.faults.checker.quarantine import Held, misplaced
from tests.faults.checker.records import Records
from tests.faults.checker.rows import Rows, read_rows
from tests.faults.checker.verdict import Fault, Finding, some

Mask = npt.NDArray[np.bool_]


class Tally:
    """How many rows each record has left; ``update`` reads the data files that are new."""

    def __init__(self, log: Log, watched: Watched) -> None:
        self._log = log
        self._watched = watched
        self._seen: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._seen.clear()
        self.counts: dict[Place, Integers] = {}
        self._unequal: dict[Place, list[int]] = {}
        self._strays: dict[Place, list[int]] = {}

    def update(self, records: Mapping[Place, Records]) -> None:
        """Count the rows that came since; all of them where rows were taken away."""
        files = set(self._log.files)
        if not self._seen <= files:
            self._forget()
        for place, each in records.items():
            counts = np.zeros(len(each.offsets), np.int64)
            known = self.counts.get(place, counts[:0])[: len(counts)]
            counts[: len(known)] = known
            self.counts[place] = counts
        for file in sorted(files - self._seen):
            with self._log.reading(file) as path:
                for rows in read_rows([path], self._watched):
                    self._count(rows, records.get(rows.place))
        self._seen = files

    def _count(self, rows: Rows, here: Records | None) -> None:
        strays = self._strays.setdefault(rows.place, [])
        if here is None:
            strays += rows.offsets.tolist()
            return
        at = here.find(rows.offsets)
        found = at >= 0
        strays += rows.offsets[~found].tolist()
        np.add.at(self.counts[rows.place], at[found], 1)
        unequal = here.rows[at[found]] != rows.digests[found]
        unequal &= here.kinds[at[found]] != Kind.BAD
        self._unequal.setdefault(rows.place, []).extend(rows.offsets[found][unequal].tolist())

    def unchecked(self, records: Mapping[Place, Records]) -> int:
        """How many rows come from where Kafka can no longer be asked."""
        return sum(
            is_dark(records.get(place), offset)
            for place, offsets in self._strays.items()
            for offset in offsets
        )

    def judge(
        self, node: Node | None, records: Mapping[Place, Records], held: Held
    ) -> Iterator[Finding]:
        """Compare rows and quarantine with the records that the entries up to ``node`` cover."""
        for place, offsets in self._unequal.items():
            if offsets:
                yield Finding(Fault.INCONSISTENT, shown(place), f"rows {some(offsets)}")
        for place, offsets in self._strays.items():
            yield from _strays(place, offsets, records.get(place))
        for place, each in records.items():
            covered = covers(node, each)
            counts = self.counts[place]
            yield from _covered(each, covered, counts, held.counts[place])
            inside = slice(covered.start, covered.stop)
            yield from misplaced(each, held.counts[place], inside)


@dataclass(frozen=True)
class Covered:
    """The records of a partition that should have had their effect: a slice, less the lost."""

    start: int
    stop: int
    expected: Mask


def covers(node: Node | None, records: Records) -> Covered:
    """The records that the entries up to ``node`` account for."""
    expected = np.zeros(len(records.offsets), np.bool_)
    if node is None or records.place not in node.starts:
        return Covered(0, 0, expected)
    first, last = records.between(node.starts[records.place], node.reached[records.place])
    expected[first:last] = True
    for span in node.lost:
        if span.place == records.place:
            expected[slice(*records.between(span.start, span.until))] = False
    return Covered(first, last, expected)


def is_dark(records: Records | None, offset: int) -> bool:
    """Whether Kafka cannot be asked about an offset any more."""
    return (
        records is not None
        and records.is_dark(offset, offset + 1)
        and offset not in records.aborted
    )


def _covered(
    records: Records, covered: Covered, counts: Integers, held: Integers
) -> Iterator[Finding]:
    bad = records.kinds == Kind.BAD
    grey = records.kinds == Kind.GREY
    total = np.where(grey, counts + held, counts)
    wrong = {
        Fault.LOST: ("without a row", covered.expected & ~bad & (total == 0)),
        Fault.DUPLICATE: ("with more than one row", covered.expected & ~bad & (total > 1)),
        Fault.QUARANTINE: ("bad, and a row", covered.expected & bad & (counts > 0)),
        Fault.PHANTOM: ("a row, in no entry that stands", ~covered.expected & (counts > 0)),
    }
    for fault, (what, mask) in wrong.items():
        if mask.any():
            found = some(records.offsets[mask].tolist())
            yield Finding(fault, str(records), f"records {what}: {found}")


def _strays(place: Place, offsets: list[int], records: Records | None) -> Iterator[Finding]:
    """Rows of no visible record."""
    known = [each for each in offsets if not is_dark(records, each)]
    aborted = [each for each in known if records is not None and each in records.aborted]
    phantoms = sorted({*known} - {*aborted})
    if aborted:
        yield Finding(Fault.ABORTED_READ, shown(place), f"rows of aborted writes: {some(aborted)}")
    if phantoms:
        yield Finding(Fault.PHANTOM, shown(place), f"rows of no record: {some(phantoms)}")


class Prefixes:
    """What snapshots at any entry should hold, from running sums over the records."""

    def __init__(self, node: Node | None, records: Mapping[Place, Records], held: Held) -> None:
        self._records = records
        self._sums: dict[Place, tuple[Integers, Digests]] = {}
        for place, each in records.items():
            grey = (each.kinds == Kind.GREY) & (held.counts[place] == 0)
            applied = (each.kinds == Kind.GOOD) | grey
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
        if node.torn:
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
        return count, total % MODULUS


def _lost(node: Node, records: Records) -> bool:
    """Whether all that is dark was recorded as lost, so that it has left no row."""
    spans = [each for each in node.lost if each.place == records.place]
    return not records.thinned and all(
        any(span.start <= low and high <= span.until for span in spans)
        for low, high in records.dark
    )
