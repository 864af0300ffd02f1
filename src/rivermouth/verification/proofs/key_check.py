"""Checking one key: the row that the rule leaves against the rows that the table holds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.verification.formats.reader import NOT_VERIFIABLE, Undecodable
from rivermouth.verification.proofs.decoding import Comparison, EntryReaders, decoded
from rivermouth.verification.proofs.key_rules import (
    Change,
    Expected,
    Key,
    Rank,
    Row,
    Rule,
    UnknownKeys,
    rank,
)
from rivermouth.verification.proofs.replay import Doubts
from rivermouth.verification.result import Kind, count
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows, coordinates, row_field, tuples

_SOFT_DELETE = "_tombstone"
"""Where no MERGE can delete, a deleted row has a value here until a later statement removes it."""
_PLACES = 1 << 24


class Touched:
    """The keys of the records that were read, by their hashes: 16 MiB for any number of them.

    A key that was not added may be in it; one that was added always is.
    """

    def __init__(self) -> None:
        self._places = bytearray(_PLACES)

    def add(self, key: Hashable) -> None:
        """Note a key."""
        self._places[hash(key) % _PLACES] = 1

    def __contains__(self, key: Hashable) -> bool:
        return self._places[hash(key) % _PLACES] == 1


def table_rows(
    subject: Subject, table: Rows, columns: Sequence[str], touched: Touched
) -> Iterator[tuple[Key, Row]]:
    """The rows of a table with their keys; a row without coordinates is a finding.

    Where the verification begins after an entry, only rows of touched keys and rows from after that
    entry. Of the others only the key columns are looked at.
    """
    keys = list(subject.pipeline.target.keys)
    unknown = 0
    deleted = f"{_SOFT_DELETE} IS NULL" if _SOFT_DELETE in table.schema.names else None
    for batch in table.batches([*columns, "_kafka"], deleted):
        if subject.ledger.since is not None:
            batch = batch.take(pa.array(_verified(subject, batch, keys, touched)))
        names = ("topic", "partition", "offset", "timestamp")
        facts = zip(*(row_field(batch, "_kafka", name).to_pylist() for name in names), strict=True)
        metadata = subject.metadata.of_rows(batch)
        found = zip(tuples(batch, keys), tuples(batch, columns), facts, metadata, strict=True)
        for key, values, (topic, partition, offset, stamp), more in found:
            if topic is None or partition is None or offset is None:
                unknown += 1
            else:
                yield key, Row((topic, partition), offset, values, stamp, more)
    if unknown:
        line = f"{count(unknown, 'row')} without Kafka coordinates"
        subject.findings.add(Kind.UNEXPECTED, line, count=unknown)


def _verified(
    subject: Subject, batch: pa.RecordBatch, keys: Sequence[str], touched: Touched
) -> NDArray[np.intp]:
    """Which rows of a batch are wanted."""
    wanted = np.array([key in touched for key in tuples(batch, keys)], bool)
    found, _ = coordinates(batch, "_kafka")
    known = np.zeros(batch.num_rows, bool)
    for each in found:
        known[each.rows] = True
        wanted[each.rows] |= each.offsets >= subject.begins(each.partition)
    return np.flatnonzero(wanted | ~known)


class KeyCheck:
    """Checks keys one by one. ``expected`` counts rows, ``not_verifiable`` counts keys, ``former``
    those with rows from before an accepted change, ``earlier`` those whose row is from before the
    verified entries and ranks highest, ``retired`` rows of pipelines no longer configured.

    ``doubts`` takes what is wrong unless compaction explains it.
    """

    def __init__(
        self,
        subject: Subject,
        comparison: Comparison,
        readers: EntryReaders,
        rule: Rule,
        doubts: Doubts,
        unknown: UnknownKeys,
    ) -> None:
        self.expected = 0
        self.not_verifiable = 0
        self.retired = 0
        self.former = 0
        self.earlier = 0
        self._doubts = doubts
        self._unknown = unknown
        ours = {topic for topic, _ in subject.coverage}
        retired = {*subject.retired, *subject.retired.former}
        self._theirs = (subject.shared | {topic for topic, _ in retired}) - ours
        self._their_parts = (subject.shared_parts | retired) - {*subject.coverage}
        self._others = bool(self._theirs or self._their_parts)
        self._subject = subject
        self._comparison = comparison
        self._readers = readers
        self._rule = rule
        columns = [each.name for each in subject.pipeline.columns]
        self._order = [columns.index(name) for name in subject.pipeline.target.order_by]
        self._readable_from = subject.readable_from
        ledger = subject.ledger
        self._whole = not (self._readable_from or ledger.trimmed or ledger.since)

    def check(self, key: Key, changes: Sequence[Change], rows: Sequence[Row]) -> None:
        """Compare what the rule leaves of a key with its rows in the table."""
        if not changes and not any(map(self._is_verified, rows)):
            return
        if not changes and all(map(self._is_theirs, rows)):
            self.retired += sum(not self._subject.is_shared(each.partition) for each in rows)
            return
        certain = self._readable_from == 0 and not self._subject.ledger.trimmed
        if self._subject.erased.any_named():
            changes, certain = self._after_deletes(key, changes, rows, certain)
        found = self._rule.expected(changes, self._readable_from, certain=certain)
        self.expected += found.row is not None
        if len(rows) > 1:
            line = f"key {shown_key(key)}: {len(rows)} rows, from {', '.join(map(str, rows[:3]))}"
            self._subject.findings.add(Kind.DUPLICATED, line, count=len(rows) - 1)
        row = next((each for each in rows if _same_record(each, found.row)), None)
        if row is not None and found.row is not None:
            self._compare(key, found, found.row, row)
        elif rows:
            self._other(key, found, rows[0])
        elif found.row is not None:
            self._absent(key, found, found.row)

    def settle(self) -> None:
        """Ask Kafka for the records that decide about the rows of compacted topics."""
        explained = self._doubts.settle(self._subject.source, self._subject.findings)
        self.not_verifiable += explained

    def _after_deletes(
        self, key: Key, changes: Sequence[Change], rows: Sequence[Row], certain: bool
    ) -> tuple[Sequence[Change], bool]:
        """The changes since the last time that the key's row was deleted on purpose.

        And whether the key is known to have had no row before them. A row that is named, and did
        not stand then by the rule, is a finding.
        """
        erased = self._subject.erased
        # by partition and offset
        took = {each[1:3]: erased.follows(each.partition, each.offset) for each in changes}
        for follows in sorted({one for found in took.values() for one in found}):
            before = [each for each in changes if each.entry < follows]
            named = [each for each in before if follows in took[each[1:3]]]
            former = all(self._subject.may_be_former(each.partition, each.offset) for each in named)
            # A key has one row at a time: where an earlier one of it stands, none of it was taken.
            still_there = any(_same_record(row, each) for row in rows for each in before)
            if not named or (former and still_there):
                continue  # it took the row of an earlier record at that offset
            stood = self._rule.expected(before, self._readable_from, certain=certain)
            if stood.row in named or not stood.certain or self._others or self._unknown.deletes:
                erased.rows += 1
            elif former:
                continue  # the row of an earlier record, too
            else:
                line = f"key {shown_key(key)}: the ledger says that a row was deleted on purpose"
                self._subject.findings.add(Kind.FAULT, f"{line}, but {stood.row or 'none'} stood")
            changes = [each for each in changes if each.entry >= follows]
            certain = follows >= self._readable_from
        return changes, certain

    def _absent(self, key: Key, found: Expected, row: Change) -> None:
        lost = self._may_be_lost(found, row)
        if lost or self._others or self._unknown.deletes:
            self.not_verifiable += 1
            return
        if self._subject.erased.may_lack(row.entry):
            return
        line = f"key {shown_key(key)}: found no row, expected the row of {row}"
        self._subject.findings.add(Kind.MISSING, line)

    def _other(self, key: Key, found: Expected, row: Row) -> None:
        """The table holds another row than the rule leaves."""
        if self._explained(found, row):
            if self._is_earlier(found, row):
                self.earlier += 1
            elif self._subject.may_be_former(row.partition, row.offset):
                self.former += 1
            else:
                self.not_verifiable += 1
            return
        expected = found.row
        erased = self._subject.erased
        if expected is not None and erased.may_lack(expected.entry, self._entry(row)):
            return  # it came after a DELETE had taken the expected row
        kind = Kind.UNEXPECTED if found.row is None else Kind.DIFFERENT
        wanted = "no row" if found.row is None else f"the row of {found.row}"
        line = f"key {shown_key(key)}: found the row of {row}, expected {wanted}"
        if self._may_stand(found, row) and self._may_be_compacted(row):
            self._doubts.add(row.partition, row.offset, kind, line)
        else:
            self._subject.findings.add(kind, line)

    def _explained(self, found: Expected, row: Row) -> bool:
        """Whether records or entries that cannot be read any more may have left this row."""
        if self._is_theirs(row) or self._unknown.deletes:
            return True
        if self._others and not found.stays and self._is_later(row, found.row):
            return True  # another pipeline may have deleted the expected row in between
        if (row.partition, row.offset) in self._unknown.places:
            return True
        if found.certain or not self._not_verifiable(row):
            return False
        expected = found.row
        lost = expected is not None and self._may_be_lost(found, expected)
        return lost or self._may_stand(found, row)

    def _is_later(self, row: Row, expected: Change | None) -> bool:
        return expected is not None and self._entry(row) > expected.entry

    def _may_be_lost(self, found: Expected, expected: Change) -> bool:
        """Whether a record that cannot be read any more may have taken the expected row away."""
        return not (found.certain or found.stays) and expected.entry < self._readable_from

    def _is_theirs(self, row: Row) -> bool:
        return row.partition[0] in self._theirs or row.partition in self._their_parts

    def _is_verified(self, row: Row) -> bool:
        return row.offset >= self._subject.begins(row.partition)

    def _is_earlier(self, found: Expected, row: Row) -> bool:
        """Whether the row is of an entry before those that are verified, and may rank highest."""
        ours = not self._unknown.deletes and not self._is_theirs(row)
        return ours and found.row is not None and not self._is_verified(row)

    def _may_stand(self, found: Expected, row: Row) -> bool:
        """Whether the row may be right if its record was once there."""
        expected = found.row
        return expected is None or self._rule.may_stand(self._rank(row), expected.rank)

    def _not_verifiable(self, row: Row) -> bool:
        """Whether the row's record, or others of its entry, cannot be read any more."""
        if self._subject.not_verifiable(row.partition, row.offset):
            return True
        if self._subject.may_be_former(row.partition, row.offset):
            return True
        return 0 <= self._entry(row) < self._readable_from

    def _entry(self, row: Row) -> int:
        """The entry that covers the row's record; -1: none does."""
        span = self._subject.coverage.spans.get(row.partition)
        if span is None:
            return -1
        index = int(span.index(np.array([row.offset], np.int64))[0])
        return int(span.entries[index]) if index >= 0 else -1

    def _may_be_compacted(self, row: Row) -> bool:
        """Whether the row's record is one that compaction may have removed."""
        span = self._subject.coverage.spans.get(row.partition)
        covered = span is not None and span.start <= row.offset < span.until
        return row.partition[0] in self._subject.compacted and covered

    def _rank(self, row: Row) -> Rank:
        return rank((row.values[index] for index in self._order), row.partition, row.offset)

    def _before(self, found: Expected) -> Iterator[Sequence[Any]]:
        """The values of the records before the row's, the newest first.

        Kafka may not have the first of them any more, though it is certain which row stands.
        """
        for each in found.before:
            yield decoded(self._readers.of(each.entry), each.value)
        row = found.row
        if self._others or not self._whole or (row and row.partition[0] in self._subject.compacted):
            yield [NOT_VERIFIABLE] * len(self._subject.pipeline.columns)

    def _may_be_former(self, found: Expected, expected: Change, row: Row) -> bool:
        """Whether the row is that of an earlier record at the same offset, which ranks as high."""
        if found.certain or not (self._order or found.stays):
            return False
        is_first = self._rank(row) >= expected.rank
        return is_first and self._subject.may_be_former(row.partition, row.offset)

    def _compare(self, key: Key, found: Expected, expected: Change, row: Row) -> None:
        values = (*row.values, row.timestamp_us, *row.metadata)
        kafka = (expected.timestamp_us, *expected.metadata)
        read = self._readers.of(expected.entry)
        try:
            line = self._comparison.differences(
                read, expected.value, kafka, values, before=lambda: self._before(found)
            )
        except Undecodable as fault:
            line = f"{expected}: not in quarantine, but verify cannot decode it: {fault}"
            self._subject.findings.add(Kind.DIFFERENT, line)
            return
        if line and self._may_be_former(found, expected, row):
            self.former += 1
        elif line:
            line = f"key {shown_key(key)} of {row}: {line}"
            self._subject.findings.add(Kind.DIFFERENT, line)


def shown_key(key: Key) -> str:
    """A key as people read it: ``5`` or ``(5, eu)``."""
    names = [str(each) for each in key]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _same_record(row: Row, change: Change | None) -> bool:
    return change is not None and (row.partition, row.offset) == (change.partition, change.offset)
