"""Counting: the visible records of a range are the rows that it left, here or in quarantine, and
those that leave none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tests.faults.checker.append import Mask
from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import Integers
from tests.faults.checker.entry import Entry, RowCounts, Span
from tests.faults.checker.evidence import Place
from tests.faults.checker.quarantine import Held
from tests.faults.checker.records import Records
from tests.faults.checker.verdict import Fault, Finding


class Counts:
    """Applied, quarantined and skipped records of any range.

    ``rows`` counts the rows of each record in an append table; None for an upsert, whose rows
    do not tell: there every visible record that is not in quarantine counts as applied.
    ``erased`` records left a row that was deleted on purpose.
    """

    def __init__(
        self,
        records: Mapping[Place, Records],
        held: Held,
        rows: Mapping[Place, Integers] | None,
        erased: Mapping[Place, Mask] | None = None,
    ) -> None:
        self._records = records
        self._held = held
        self._applied: dict[Place, Integers] = {}
        for place, each in records.items():
            good = each.kinds < Kind.BAD
            applied = good if rows is None else rows[place]
            if rows is not None and erased is not None:
                applied = applied + (erased[place] & (applied == 0))  # it was there once
            self._applied[place] = np.cumsum(np.append(0, applied), dtype=np.int64)

    def found(self, entry: Entry, span: Span) -> RowCounts:
        """Applied records of a range, rows in quarantine under its entry, and what was skipped."""
        records = self._records[span.place]
        first, last = records.between(span.start, span.until)
        applied = self._applied[span.place]
        quarantined = self._held.by_commit.get((entry.commit, span.place), 0)
        skipped = np.count_nonzero(records.kinds[first:last] == Kind.SKIPPED)
        return RowCounts(int(applied[last] - applied[first]), quarantined, int(skipped))

    def expected(self, entry: Entry) -> list[RowCounts] | None:
        """Good, bad and skipped records of each range; None where Kafka alone cannot tell."""
        counts: list[RowCounts] = []
        for span in entry.spans:
            records = self._records[span.place]
            first, last = records.between(span.start, span.until)
            kinds = records.kinds[first:last]
            if records.is_dark(span.start, span.until):
                return None
            bad, skipped = (int(np.sum(kinds == kind)) for kind in (Kind.BAD, Kind.SKIPPED))
            counts.append(RowCounts(last - first - bad - skipped, bad, skipped))
        return counts

    def judge(self, entry: Entry) -> Iterator[Finding]:
        """Compare what was found with what was visible, and with what the entry states."""
        for index, span in enumerate(entry.spans):
            records = self._records[span.place]
            if span in entry.lost or records.is_dark(span.start, span.until):
                continue
            first, last = records.between(span.start, span.until)
            found = self.found(entry, span)
            where = f"{entry.pipeline} {entry} {span}"
            said = f"{found[0]} applied, {found[1]} quarantined, {found[2]} skipped"
            if last - first != sum(found):
                what = f"{last - first} records, {said}"
                yield Finding(Fault.CONSERVATION, where, what)
            if entry.rows is not None and entry.rows[index] != found:
                what = f"the entry states {entry.rows[index]}, found {said}"
                yield Finding(Fault.CONSERVATION, where, what)

    def unchecked(self, entry: Entry) -> int:
        """How many ranges of an entry Kafka no longer lets us count."""
        return sum(
            span not in entry.lost and self._records[span.place].is_dark(span.start, span.until)
            for span in entry.spans
        )
