"""Upsert tables: the topic is folded again, and compared with the table key by key.

Memory: keys are spread by hash over files on disk, about 50,000 records each, and one
file at a time is folded and compared; so it is bounded by that many records and their
rows, unless single keys have more changes than that. A quarantined record takes 17 bytes.
Every key is compared, with the place of its winner and the values of all columns.

What expired, what compaction removed and what entries were trimmed may have left rows that
cannot be judged: such keys are counted as unchecked, never as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from rivermouth.verify.formats.json import KeyDecoder, RowDecoder, parse_object
from rivermouth.verify.formats.json_values import UNJUDGED
from rivermouth.verify.formats.text import Undecodable
from rivermouth.verify.ledger.entry import Place, shown
from rivermouth.verify.proofs.key_check import Judge, Row
from rivermouth.verify.proofs.latest_rule import Change, Key
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.replay import Progress, Seen, replay
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import Kind
from rivermouth.verify.subject import Subject, count
from rivermouth.verify.tables.batches import Rows, field, tuples

BUCKET = 50_000
_MAX_BUCKETS = 1024
_PENDING = 50_000


def verify_upsert(
    subject: Subject,
    table: Rows,
    quarantine: Mapping[Place, Quarantined],
    folder: Path,
    progress: Progress,
    bucket: int = BUCKET,
) -> None:
    """Compare the table with the folded topic; what differs goes into the findings."""
    number = min(_MAX_BUCKETS, 1 + subject.coverage.total() // bucket)
    changes = _Buckets(folder / "changes", number)
    rows = _Buckets(folder / "rows", number)
    reader = _Changes(subject, table)
    for seen in replay(subject, quarantine, progress):
        for key, change in reader.changes(seen):
            changes.add(key, change)
    for key, row in _table_rows(subject, table):
        rows.add(key, row)
    judge = Judge(subject, table.schema)
    for each in range(number):
        by_key: dict[Key, tuple[list[Change], list[Row]]] = {}
        for key, change in changes.take(each):
            by_key.setdefault(key, ([], []))[0].append(change)
        for key, row in rows.take(each):
            by_key.setdefault(key, ([], []))[1].append(row)
        for key, (found, standing) in by_key.items():
            judge.key(key, found, standing)
    quarantined = sum(int(span.quarantined.sum()) for span in subject.coverage.spans.values())
    subject.findings.superseded = max(0, subject.coverage.records() - quarantined - judge.expected)
    if judge.undecided:
        line = f"{count(judge.undecided, 'key')} that only records no longer in Kafka could decide"
        subject.findings.unchecked.append(line)


class _Buckets:
    """Keyed items, spread by the hash of their key over numbered files."""

    def __init__(self, folder: Path, number: int) -> None:
        self._spill = Spill(folder)
        self._pending: list[list[Any]] = [[] for _ in range(number)]
        self._items = 0

    def add(self, key: Key, item: object) -> None:
        self._pending[hash(key) % len(self._pending)].append((key, item))
        self._items += 1
        if self._items >= _PENDING:
            self._flush()

    def take(self, number: int) -> Iterator[Any]:
        """All items of one file, in the order they came, with their keys."""
        self._flush()
        return self._spill.take_items(number)

    def _flush(self) -> None:
        for number, items in enumerate(self._pending):
            if items:
                self._spill.add_items(number, items)
        self._pending = [[] for _ in self._pending]
        self._items = 0


class _Changes:
    """Turns visible records into keyed changes."""

    def __init__(self, subject: Subject, table: Rows) -> None:
        target, form = subject.pipeline.target, subject.pipeline.source.key
        self._subject = subject
        self._keys = RowDecoder(table.schema, target.keys)
        self._order = RowDecoder(table.schema, target.order_by)
        self._tombstones = KeyDecoder(form.value, table.schema, target.keys) if form else None

    def changes(self, seen: Seen) -> Iterator[tuple[Key, Change]]:
        """The changes among the good records; one that does not decode is a finding."""
        entries = self._subject.coverage.spans[seen.place].entries[seen.ranges]
        facts = zip(seen.messages, entries.tolist(), seen.good.tolist(), strict=True)
        for message, entry, good in facts:
            if not good:
                continue
            try:
                yield self._change(seen.place, message, entry)
            except Undecodable as fault:
                where = f"{shown(seen.place)}@{message.offset()}"
                line = f"{where}: not in quarantine, yet it does not decode here: {fault}"
                self._subject.findings.add(Kind.DIFFERENT, line)

    def _change(self, place: Place, message: Message, entry: int) -> tuple[Key, Change]:
        value, order = message.value(), ()
        if value is not None:
            parsed = parse_object(value)
            key = _judged(self._keys.row(parsed))
            if None in key:
                raise Undecodable("a key column is null")
            order = _judged(self._order.row(parsed))
        elif self._tombstones is not None:
            key = self._tombstones.row(message.key())
        else:
            raise Undecodable("a null value")
        stamp = message.timestamp()[1] * 1000
        return key, Change(entry, place, int(message.offset() or 0), order, stamp, value)


def _judged(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if any(each is UNJUDGED for each in values):
        raise Undecodable("a key or order column holds text made from an object")
    return values


def _table_rows(subject: Subject, table: Rows) -> Iterator[tuple[Key, Row]]:
    columns = [each.name for each in subject.pipeline.columns]
    keys = [columns.index(name) for name in subject.pipeline.target.keys]
    strangers = 0
    # A marked row is deleted: where no MERGE can delete, a later statement takes it away.
    marks = "_tombstone" in table.schema.names
    for batch in table.batches([*columns, "_kafka"], "_tombstone IS NULL" if marks else None):
        topics, partitions, offsets = (
            field(batch, "_kafka", name).to_pylist() for name in ("topic", "partition", "offset")
        )
        stamps = field(batch, "_kafka", "timestamp").to_pylist()
        places = zip(topics, partitions, offsets, stamps, strict=True)
        for values, (topic, partition, offset, stamp) in zip(
            tuples(batch, columns), places, strict=True
        ):
            if topic is None or partition is None or offset is None:
                strangers += 1
            else:
                key = tuple(values[index] for index in keys)
                yield key, Row((topic, partition), offset, values, stamp)
    if strangers:
        line = f"{count(strangers, 'row')} without Kafka coordinates"
        subject.findings.add(Kind.UNEXPECTED, line, count=strangers)
