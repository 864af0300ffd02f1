"""An append table: each visible record is one row or lies in quarantine, and nothing else is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.faults.checker.data_files import DataFile
from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import Integers
from tests.faults.checker.erasure import Erasures
from tests.faults.checker.evidence import Place, Watched, shown
from tests.faults.checker.ledger import Node
from tests.faults.checker.log import Log
from tests.faults.checker.quarantine import Held, misplaced
from tests.faults.checker.records import Records, meanings
from tests.faults.checker.rows import Rows, read_rows
from tests.faults.checker.verdict import Fault, Finding, some

Mask = npt.NDArray[np.bool_]


class Tally:
    """How many rows each record has left; ``update`` reads the data files that are new."""

    def __init__(self, log: Log, watched: Watched) -> None:
        self._log = log
        self._watched = watched
        self._seen: set[DataFile] = set()
        self._forget()

    def _forget(self) -> None:
        self._seen.clear()
        self.counts: dict[Place, Integers] = {}
        self._unequal: dict[Place, list[int]] = {}
        self._strays: dict[Place, list[int]] = {}
        self._at_one: Counter[tuple[Place, int]] = Counter()

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
        for file in files - self._seen:
            with self._log.reading(file):
                for rows in read_rows([file], self._watched):
                    self._count(rows, meanings(records, rows.place))
        self._seen = files

    def _count(self, rows: Rows, meant: Sequence[Records]) -> None:
        """Count each row for the record that it is of: where several may be, for its equal."""
        left = np.ones(len(rows.offsets), np.bool_)
        for here in meant if len(meant) > 1 else ():
            at = here.find(rows.offsets)
            equal = left & (at >= 0) & (here.rows[at] == rows.digests if len(here.rows) else False)
            np.add.at(self.counts[here.place], at[equal], 1)
            left &= ~equal
        for here in meant:
            # What another meaning may explain that Kafka no longer has is not judged by this one.
            others = [each for each in meant if each is not here]
            at = here.find(rows.offsets)
            found = left & (at >= 0) & ~_dark(others, rows.offsets)
            np.add.at(self.counts[here.place], at[found], 1)
            unequal = here.rows[at[found]] != rows.digests[found] if found.any() else found[:0]
            unequal &= here.kinds[at[found]] < Kind.BAD
            self._unequal.setdefault(here.place, []).extend(rows.offsets[found][unequal].tolist())
            left &= ~found
        for offset in rows.offsets[left].tolist():
            earlier = self._at_one[rows.place, offset]
            self._at_one[rows.place, offset] += 1
            place = _owner(meant, offset, earlier).place if meant else rows.place
            self._strays.setdefault(place, []).append(offset)

    def unchecked(self, records: Mapping[Place, Records]) -> int:
        """How many rows come from where Kafka can no longer be asked."""
        return sum(
            is_dark(records.get(place), offset)
            for place, offsets in self._strays.items()
            for offset in offsets
        )

    def judge(
        self,
        node: Node | None,
        records: Mapping[Place, Records],
        held: Held,
        erasures: Erasures,
    ) -> Iterator[Finding]:
        """Compare rows and quarantine with the records that the entries up to ``node`` cover."""
        for place, offsets in self._unequal.items():
            if offsets:
                yield Finding(Fault.INCONSISTENT, shown(place), f"rows {some(offsets)}")
        for place, offsets in self._strays.items():
            yield from _strays(place, offsets, records.get(place))
        erased = self.erased(node, records, erasures)
        for place, each in records.items():
            covered = covers(node, each)
            counts = self.counts[place]
            yield from _covered(each, covered, counts, erased[place])
            inside = slice(covered.start, covered.stop)
            yield from misplaced(each, held.counts[place], inside)

    def erased(
        self, node: Node | None, records: Mapping[Place, Records], erasures: Erasures
    ) -> dict[Place, Mask]:
        """The records whose rows were deleted on purpose, as far as anybody can tell."""
        known = {place: erasures.of(node, each) > 0 for place, each in records.items()}
        missing = {
            place: covers(node, each).expected
            & (each.kinds == Kind.GOOD)
            & (self.counts[place] == 0)
            for place, each in records.items()
        }
        unknown = {place: missing[place] & ~known[place] for place in records}
        if 0 < sum(int(each.sum()) for each in unknown.values()) <= erasures.left(node):
            return {place: known[place] | unknown[place] for place in records}
        return known


def _dark(records: Sequence[Records], offsets: Integers) -> Mask:
    """Which offsets were those of records that Kafka has deleted since."""
    dark = np.zeros(len(offsets), np.bool_)
    for each in records:
        dark |= np.array([is_dark(each, offset) for offset in offsets.tolist()], np.bool_)
    return dark


def _owner(meant: Sequence[Records], offset: int, earlier: int) -> Records:
    """Whose record a row may be that is no visible one: one that Kafka no longer has comes first.

    The offset of a record that is gone may be that of an aborted one in the topic of today, and of
    one in each of several topics that are gone: ``earlier`` rows have been given to these, the
    oldest first, so that a topic that goes later changes nothing.
    """
    dark = [each for each in reversed(meant) if is_dark(each, offset)]
    if dark:
        return dark[min(earlier, len(dark) - 1)]
    aborted = [each for each in meant if offset in each.aborted]
    return next(iter((*aborted, *meant)))


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
    records: Records, covered: Covered, counts: Integers, erased: Mask
) -> Iterator[Finding]:
    bad = records.kinds >= Kind.BAD
    wrong = {
        Fault.LOST: ("without a row", covered.expected & ~bad & ~erased & (counts == 0)),
        Fault.ERASURE: ("deleted on purpose, and a row", erased & (counts > 0)),
        Fault.DUPLICATE: ("with more than one row", covered.expected & ~bad & (counts > 1)),
        Fault.QUARANTINE: ("bad or skipped, and a row", covered.expected & bad & (counts > 0)),
        Fault.PHANTOM: ("a row, in no entry that stands", ~covered.expected & (counts > 0)),
    }
    for fault, (what, mask) in wrong.items():
        if mask.any():
            found = some(records.offsets[mask].tolist())
            yield Finding(fault, str(records), f"records {what}: {found}")


def _strays(place: Place, offsets: list[int], records: Records | None) -> Iterator[Finding]:
    """Rows of no visible record."""
    known = [each for each in offsets if not is_dark(records, each)]
    dark = Counter(each for each in offsets if is_dark(records, each))
    twice = sorted(each for each, times in dark.items() if times > 1)
    if twice:
        yield Finding(Fault.DUPLICATE, shown(place), f"rows of one offset: {some(twice)}")
    aborted = [each for each in known if records is not None and each in records.aborted]
    phantoms = sorted({*known} - {*aborted})
    if aborted:
        yield Finding(Fault.ABORTED_READ, shown(place), f"rows of aborted writes: {some(aborted)}")
    if phantoms:
        yield Finding(Fault.PHANTOM, shown(place), f"rows of no record: {some(phantoms)}")
