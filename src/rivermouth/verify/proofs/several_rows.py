"""Records that may have any number of rows: their rows are counted by entry.

Each row belongs to the entry whose ranges hold its offset, and the commit of an entry tells how
many rows it wrote. So a row that is lost, or there once more, changes the number of its entry. Not
told: which row that is, how many rows a record should have, and a row that is lost where another
one of its entry is doubled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rivermouth.verify.ledger.coverage import Offsets, Span
from rivermouth.verify.result import Kind, Unchecked, count
from rivermouth.verify.subject import Subject


def may_explode(subject: Subject) -> bool:
    """Whether a record of any entry may have several rows."""
    explodes = any(each.explode for each in subject.ledger.effective)
    return explodes or subject.pipeline.target.explode


class SeveralRows:
    """The rows of the entries whose records may have several, and how many there should be."""

    def __init__(self, subject: Subject) -> None:
        entries = subject.ledger.effective
        self._entries = entries
        self._explodes = np.array([each.explode for each in entries], bool)
        self._any = may_explode(subject)
        self._found = np.zeros(len(entries), np.int64)
        self._records = 0

    def count(self, span: Span, offsets: Offsets) -> None:
        """Take rows of one partition; each offset is in a range of ``span``."""
        if self._explodes.any():
            entries = span.entries[span.index(offsets)]
            self._found += np.bincount(entries, minlength=len(self._found))

    def of(self, span: Span, offsets: Offsets) -> NDArray[np.bool_]:
        """Which offsets are those of records that may have several rows."""
        if not self._explodes.any():
            return np.zeros(len(offsets), bool)
        place = span.index(offsets)
        return self._explodes[span.entries[place]] & (place >= 0)

    def as_one(
        self, span: Span, start: int, rows: NDArray[np.int32], former: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """The rows at the offsets from ``start`` on, with those of one record as one.

        ``former``: how many ranges from before accepted changes hold an offset. There the rows
        count as theirs: a record of one of them may have had several, too.
        """
        if not self._any:
            return rows
        several = self.of(span, np.arange(start, start + len(rows), dtype=np.int64))
        self._records += int((several & (rows > 0)).sum())
        most = np.where(several | (former > 0), np.maximum(former, 1), rows)
        return np.minimum(rows, most).astype(np.int32)

    def report(self, subject: Subject) -> None:
        """Compare the rows of each entry with those that its commit wrote."""
        for number in np.flatnonzero(self._explodes).tolist():
            self._compare(subject, number)
        if self._records:
            records = count(self._records, "record")
            line = f"how many rows each of {records} has: the target says explode"
            subject.findings.leave(Unchecked.EXPLODED, line, self._records)

    def _compare(self, subject: Subject, number: int) -> None:
        entry, found = self._entries[number], int(self._found[number])
        where = f"entry {entry.sequence}: {count(found, 'row')} in the table"
        moved = [each.partition for each in entry.ranges if each.start < each.until]
        if not moved:
            return
        if any(map(subject.has_former, moved)):
            line = f"{where}, where rows from before an accepted change may be, too"
            subject.findings.leave(Unchecked.UNCOUNTED, line, found)
        elif entry.written is None:
            line = f"{where}; its commit does not tell how many it wrote"
            subject.findings.leave(Unchecked.UNCOUNTED, line, found)
        elif found > entry.written:
            line = f"{where}, but its commit wrote {entry.written:,}"
            subject.findings.add(Kind.DUPLICATED, line, count=found - entry.written)
        elif found < entry.written:
            self._lacking(subject, number, entry.written - found)

    def _lacking(self, subject: Subject, number: int, lack: int) -> None:
        """Rows are missing; those that accepted DELETEs may have taken are no finding."""
        entry = self._entries[number]
        gone = subject.erased.took(entry, number, lack)
        left = lack - gone
        while left and subject.erased.may_lack(number):  # which says so itself
            left -= 1
        where = f"entry {entry.sequence}: {count(lack, 'row')} of {entry.written:,} missing"
        if gone:
            line = f"{where}; accepted DELETEs took rows of it, nobody can tell how many"
            subject.findings.leave(Unchecked.ERASED, line, gone)
        if left:
            subject.findings.add(Kind.MISSING, where, count=left)
