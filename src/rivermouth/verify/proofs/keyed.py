"""Tables with one row for each key: the rule of the shape is applied to the topic, key by key.

Memory: keys are spread by hash over files on disk, ``Bounds.bucket`` records for each file, and
one file at a time is compared. So memory is bounded by that many records and their rows, unless
single keys have more changes than that. A quarantined record takes 17 bytes. Every key is
compared, with the coordinates of its record and the values of all columns.

Expired records, compaction and trimmed entries may have left rows that are not verifiable: such
keys are counted as unchecked, never as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import Message

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, Undecodable
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.compare import Comparison, decoded, decoded_key
from rivermouth.verify.proofs.key_check import KeyCheck, Row
from rivermouth.verify.proofs.proof import Stored, Workspace
from rivermouth.verify.proofs.replay import Seen, replay
from rivermouth.verify.proofs.rule import Change, Key, Rule
from rivermouth.verify.proofs.spill import Buckets
from rivermouth.verify.result import Kind
from rivermouth.verify.subject import Subject, count
from rivermouth.verify.tables.batches import field, tuples
from rivermouth.verify.tables.ports import Rows

_BUCKETS_MAX = 1024
_SOFT_DELETE = "_tombstone"
"""Where no MERGE can delete, a deleted row has a value here until a later statement removes it."""


def verify_keyed(subject: Subject, stored: Stored, workspace: Workspace, rule: Rule) -> None:
    """What a ``Proof`` does for a shape with keys: every key has the row that ``rule`` expects."""
    table, coverage = stored.table, subject.coverage
    columns = [each.name for each in subject.pipeline.columns]
    stored.require([*columns, "_kafka"])
    comparison = Comparison(subject.reader(table.schema, columns), columns)
    number = min(_BUCKETS_MAX, 1 + coverage.total() // workspace.bounds.bucket)
    changes = Buckets(workspace.folder / "changes", number)
    rows = Buckets(workspace.folder / "rows", number)
    keyed = _Changes(subject, table)
    for seen in replay(subject, stored, workspace.progress):
        for key, change in keyed.of(seen):
            changes.add(key, change)
    for key, row in _table_rows(subject, table, columns):
        rows.add(key, row)
    check = KeyCheck(subject, comparison, rule)
    for each in range(number):
        by_key: dict[Key, tuple[list[Change], list[Row]]] = {}
        for key, facts in changes.take(each):
            by_key.setdefault(key, ([], []))[0].append(Change(*facts))
        for key, facts in rows.take(each):
            by_key.setdefault(key, ([], []))[1].append(Row(*facts))
        for key, (its_changes, its_rows) in by_key.items():
            check.check(key, its_changes, its_rows)
    good = coverage.records() - coverage.quarantined()
    subject.findings.superseded = max(0, good - check.expected)
    if check.not_verifiable:
        keys = count(check.not_verifiable, "key")
        line = f"{keys}: not verifiable without records that Kafka no longer holds"
        subject.findings.unchecked.append(line)


class _Changes:
    """Turns visible records into keyed changes."""

    def __init__(self, subject: Subject, table: Rows) -> None:
        keys, order_by = subject.pipeline.target.keys, subject.pipeline.target.order_by
        # One reader for both, so that a value is parsed once here. The other columns are read of
        # winners only, which parses those again. To decode every column of every record, and to
        # keep the values on disk, costs more, even where every record wins.
        columns = [*dict.fromkeys((*keys, *order_by))]
        self._subject = subject
        self._read = subject.reader(table.schema, columns)
        self._read_key = subject.key_reader(table.schema)
        self._keys = len(keys)
        self._order = [columns.index(name) for name in order_by]

    def of(self, seen: Seen) -> Iterator[tuple[Key, Change]]:
        """The changes among the good records; one that does not decode is a finding."""
        entries = self._subject.coverage.spans[seen.partition].entries[seen.ranges]
        facts = zip(seen.messages, entries.tolist(), seen.good.tolist(), strict=True)
        for message, entry, good in facts:
            if not good:
                continue
            try:
                yield self._change(seen.partition, message, entry)
            except Undecodable as fault:
                where = f"{shown(seen.partition)}@{message.offset()}"
                line = f"{where}: not in quarantine, but verify cannot decode it: {fault}"
                self._subject.findings.add(Kind.DIFFERENT, line)

    def _change(self, partition: Partition, message: Message, entry: int) -> tuple[Key, Change]:
        value = message.value()
        order: tuple[Any, ...] = ()
        if value is None and self._read_key is not None:
            key = decoded_key(self._read_key, message.key())
        else:
            found = decoded(self._read, value)
            key, order = found[: self._keys], tuple(found[index] for index in self._order)
        for each in (*key, *order):
            if each is NOT_VERIFIABLE:
                raise Undecodable("a key or order column holds text made from an object")
        if None in key:
            raise Undecodable("a key column is null")
        stamp = message.timestamp()[1] * 1000
        return key, Change(entry, partition, int(message.offset() or 0), order, stamp, value)


def _table_rows(subject: Subject, table: Rows, columns: list[str]) -> Iterator[tuple[Key, Row]]:
    keys = [columns.index(name) for name in subject.pipeline.target.keys]
    unknown = 0
    deleted = f"{_SOFT_DELETE} IS NULL" if _SOFT_DELETE in table.schema.names else None
    for batch in table.batches([*columns, "_kafka"], deleted):
        names = ("topic", "partition", "offset", "timestamp")
        facts = (field(batch, "_kafka", name).to_pylist() for name in names)
        coordinates = zip(*facts, strict=True)
        for values, (topic, partition, offset, stamp) in zip(
            tuples(batch, columns), coordinates, strict=True
        ):
            if topic is None or partition is None or offset is None:
                unknown += 1
            else:
                key = tuple(values[index] for index in keys)
                yield key, Row((topic, partition), offset, values, stamp)
    if unknown:
        line = f"{count(unknown, 'row')} without Kafka coordinates"
        subject.findings.add(Kind.UNEXPECTED, line, count=unknown)
