"""Judging one key: what the fold says should stand against the rows that the table holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rivermouth.verify.formats.json import RowDecoder, differences, parse_object
from rivermouth.verify.formats.text import Undecodable
from rivermouth.verify.ledger.entry import Place, shown
from rivermouth.verify.proofs.latest_rule import Change, Key, Standing, fold, rank
from rivermouth.verify.result import Kind
from rivermouth.verify.subject import Subject

_LOOKUPS = 100


class Row(NamedTuple):
    """A row of the table: where its record came from, and its values in column order."""

    place: Place
    offset: int
    values: tuple[Any, ...]
    timestamp_us: int | None

    def __str__(self) -> str:
        return f"{shown(self.place)}@{self.offset}"


class Judge:
    """Judges keys one by one; counts expected rows, and keys that nobody can decide."""

    def __init__(self, subject: Subject, schema: pa.Schema) -> None:
        self.expected = 0
        self.undecided = 0
        self._subject = subject
        self._columns = [each.name for each in subject.pipeline.columns]
        self._order = [self._columns.index(name) for name in subject.pipeline.target.order_by]
        self._decoder = RowDecoder(schema, self._columns)
        self._dark_until = self._first_whole_entry()
        self._lookups = 0

    def key(self, key: Key, changes: Sequence[Change], rows: Sequence[Row]) -> None:
        """Compare what the changes of a key fold to with its rows in the table."""
        if not changes and all(each.place[0] in self._subject.neighbours for each in rows):
            return
        certain = self._dark_until == 0 and not self._subject.ledger.trimmed
        standing = fold(changes, self._dark_until, certain=certain)
        self.expected += standing.row is not None
        if len(rows) > 1:
            line = f"key {shown_key(key)}: {len(rows)} rows, of {', '.join(map(str, rows[:3]))}"
            self._subject.findings.add(Kind.DUPLICATED, line, count=len(rows) - 1)
        row = next((each for each in rows if _same_place(each, standing.row)), None)
        if row is not None and standing.row is not None:
            self._compare(key, standing.row, row)
        elif rows:
            self._other(key, standing, rows[0])
        elif standing.row is not None:
            self._absent(key, standing, standing.row)

    def _first_whole_entry(self) -> int:
        """The entry from which on Kafka still shows every record."""
        dark = 0
        for place, span in self._subject.coverage.spans.items():
            start, until = self._subject.readable[place]
            lost = span.entries[(span.starts < start) | (span.untils > until)]
            dark = max(dark, int(lost.max()) + 1 if len(lost) else 0)
        return dark

    def _absent(self, key: Key, standing: Standing, row: Change) -> None:
        lost = not standing.certain and row.entry < self._dark_until
        if lost or self._subject.neighbours:
            self.undecided += 1
            return
        line = f"key {shown_key(key)}: no row, expected that of {row}"
        self._subject.findings.add(Kind.MISSING, line)

    def _other(self, key: Key, standing: Standing, row: Row) -> None:
        """The table holds another row than the fold says."""
        if self._explained(standing, row):
            self.undecided += 1
        elif standing.row is None:
            line = f"key {shown_key(key)}: the row of {row} should not stand"
            self._subject.findings.add(Kind.UNEXPECTED, line)
        else:
            line = f"key {shown_key(key)}: the row of {row} stands, expected {standing.row}"
            self._subject.findings.add(Kind.DIFFERENT, line)

    def _explained(self, standing: Standing, row: Row) -> bool:
        """Whether records or entries that are gone may have left this row."""
        if row.place[0] in self._subject.neighbours:
            return True
        expected = standing.row
        higher = expected is None or self._rank(row) > expected.rank
        if not standing.certain and self._from_the_dark(row):
            return higher or (expected is not None and expected.entry < self._dark_until)
        return higher and self._compacted_away(row)

    def _from_the_dark(self, row: Row) -> bool:
        if self._subject.dark(row.place, row.offset):
            return True
        span = self._subject.coverage.spans.get(row.place)
        if span is None:
            return False
        index = int(span.index(np.array([row.offset], np.int64))[0])
        return index >= 0 and int(span.entries[index]) < self._dark_until

    def _compacted_away(self, row: Row) -> bool:
        """Whether the row's record may have been compacted; asks Kafka, not too often."""
        span = self._subject.coverage.spans.get(row.place)
        covered = span is not None and span.start <= row.offset < span.until
        if row.place[0] not in self._subject.compacted or not covered:
            return False
        self._lookups += 1
        return self._lookups > _LOOKUPS or not self._subject.source.holds(row.place, row.offset)

    def _rank(self, row: Row) -> tuple[Any, ...]:
        return rank((row.values[index] for index in self._order), row.place, row.offset)

    def _compare(self, key: Key, expected: Change, row: Row) -> None:
        try:
            values = self._decoder.row(parse_object(expected.value or b""))
        except Undecodable as fault:
            line = f"{expected}: not in quarantine, yet it does not decode here: {fault}"
            self._subject.findings.add(Kind.DIFFERENT, line)
            return
        differing = differences(
            [*self._columns, "_kafka.timestamp"],
            (*values, expected.timestamp_us),
            (*row.values, row.timestamp_us),
        )
        if differing:
            line = f"key {shown_key(key)} of {row}: {differing}"
            self._subject.findings.add(Kind.DIFFERENT, line)


def shown_key(key: Key) -> str:
    """A key as people read it: ``5`` or ``(5, eu)``."""
    names = [str(each) for each in key]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _same_place(row: Row, change: Change | None) -> bool:
    return change is not None and (row.place, row.offset) == (change.place, change.offset)
