"""One pass over Kafka: exactly the ranges of the ledger, and which records are quarantined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from confluent_kafka import Message

from rivermouth.verification.formats.reader import (
    NOT_VERIFIABLE,
    CannotTell,
    NoRow,
    Undecodable,
)
from rivermouth.verification.kafka.client import Source
from rivermouth.verification.kafka.readable import leave_out_expired
from rivermouth.verification.ledger.coverage import Flags, Offsets, Span
from rivermouth.verification.ledger.entry import Partition, shown
from rivermouth.verification.proofs.decoding import (
    EntryReaders,
    check_key,
    decoded,
    decoded_key,
    key_part,
)
from rivermouth.verification.proofs.proof import Progress, Stored
from rivermouth.verification.proofs.quarantine import Quarantined
from rivermouth.verification.proofs.sent_records import SentTopics
from rivermouth.verification.proofs.spill import Spill
from rivermouth.verification.result import Findings, Kind, Unchecked, count
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import Rows

_OFFSETS = 1 << 20
"""The doubts of so many offsets are in memory at once."""


class Doubts:
    """Rows of compacted topics that are wrong, unless compaction removed their records.

    They wait on disk, so that Kafka is asked in the order of the offsets.
    """

    def __init__(self, folder: Path) -> None:
        self._spill = Spill(folder)

    def add(self, partition: Partition, offset: int, kind: Kind, line: str) -> None:
        """Keep a finding about the row of one record."""
        self._spill.add_items((partition, offset // _OFFSETS), [(offset, kind.value, line)])

    def settle(self, source: Source, findings: Findings) -> int:
        """Add the findings whose records Kafka still has; returns how many it has not."""
        explained = 0
        for name in sorted(self._spill.names()):
            doubts = [*self._spill.take_items(name)]
            existing = source.existing(name[0], [offset for offset, _, _ in doubts])
            for offset, kind, line in doubts:
                if offset in existing:
                    findings.add(Kind(kind), line)
                else:
                    explained += 1
        return explained


class Verdicts:
    """Judges the quarantined records of a pipeline, one by one."""

    def __init__(self, subject: Subject, table: Rows) -> None:
        self._subject = subject
        self._schema = subject.record_schema(table.schema)
        self._columns = [each.name for each in subject.pipeline.columns]
        parts = subject.pipeline.target.key_parts
        self._keys = [(self._columns.index(each.column), each.width_us) for each in parts]
        self._topics = SentTopics(subject.ledger.effective, self._columns)
        self._unknown = 0
        self.operations = EntryReaders(subject, self._schema, [])

    @cached_property
    def _readers(self) -> EntryReaders | None:
        """None where a shape has a table without the columns."""
        known = {*self._columns} <= {*self._schema.names}
        return EntryReaders(self._subject, self._schema, self._columns) if known else None

    def judge(
        self, partition: Partition, message: Message, entry: int, *, too_large: bool = False
    ) -> None:
        """Add a finding where a record of that entry gives all that the table needs.

        ``too_large``: it is in quarantine because a total would not fit. In a table of totals that
        is for its proof to judge, which sees all records of the key.
        """
        if too_large and self._subject.pipeline.shape.totals:
            return
        try:
            self._decode(message, entry)
        except NoRow:
            pass  # nothing of it is bad
        except Undecodable:
            return
        except CannotTell:
            self._unknown += 1
            return
        where = f"{shown(partition)}@{message.offset()}"
        line = f"{where}: in quarantine, but the record can be decoded"
        self._subject.findings.add(Kind.QUARANTINE, line)

    def report(self) -> None:
        """Say how many records could not be judged."""
        records = count(self._unknown, "record")
        line = f"{records} in quarantine: verify cannot tell what Spark makes of them"
        self._subject.findings.leave(Unchecked.VERDICTS, line, self._unknown)

    def _knew_more(self, entry: int) -> bool:
        """Whether an entry was decoded with columns that are not configured any more."""
        return not {*self._subject.ledger.effective[entry].columns} <= {*self._columns}

    def _decode(self, message: Message, entry: int) -> None:
        """Raises Undecodable where the record is bad, and CannotTell."""
        if self._readers is None:
            raise CannotTell("the table has other columns")
        if self._knew_more(entry):
            raise CannotTell("the record was decoded with columns that are not configured any more")
        read_key = self._readers.of_keys(entry)
        value = self._readers.value(entry, message)
        if value is None and read_key is not None:
            key = decoded_key(read_key, self._readers.key(entry, message))
        else:
            found = decoded(self._readers.of(entry), value)
            self._topics.check(entry, found)
            key = tuple(key_part(found[index], width) for index, width in self._keys)
            if any(each is NOT_VERIFIABLE for each in found):
                raise CannotTell("a value")
        check_key(key)


_PARTITIONS_AT_ONCE = 16
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Seen:
    """Visible records of one partition, ascending; ``good`` are those not in quarantine.

    ``skipped`` are those that make no row. ``ranges`` holds the index of each record's range in its
    ``Span``. ``done``: the partition has been read to its end; comes once for each partition, with
    no records.
    """

    partition: Partition
    messages: Sequence[Message]
    offsets: Offsets
    ranges: Offsets
    good: Flags
    skipped: Flags
    done: bool

    def part(self, first: int, last: int) -> Seen:
        """The records from the place ``first`` up to, not including, ``last``."""
        cut = slice(first, last)
        return replace(
            self,
            messages=self.messages[cut],
            offsets=self.offsets[cut],
            ranges=self.ranges[cut],
            good=self.good[cut],
            skipped=self.skipped[cut],
        )


def replay(subject: Subject, stored: Stored, progress: Progress) -> Iterator[Seen]:
    """Yield the visible records of every covered partition, a few partitions at a time.

    Counts them per range, compares quarantined ones with the raw record, judges whether they belong
    in quarantine, and at the end leaves out what expired meanwhile and reports quarantined offsets
    that Kafka does not show. Raises SourceError.
    """
    verdicts = Verdicts(subject, stored.table)
    total, done = subject.coverage.total(), 0
    partitions = iter(subject.readable.items())
    while group := dict(islice(partitions, _PARTITIONS_AT_ONCE)):
        reached = {partition: start for partition, (start, _) in group.items()}
        done += sum(start - subject.coverage.spans[each].start for each, start in reached.items())
        for partition, messages in subject.source.read(group):
            now = int(messages[-1].offset() or 0) + 1 if messages else group[partition][1]
            done, reached[partition] = done + now - reached[partition], now
            progress(subject.pipeline.name, done, total)
            yield _seen(subject, stored.quarantined(partition), verdicts, partition, messages)
    leave_out_expired(subject.readable, subject.source, subject.findings)
    verdicts.report()
    for partition, rows in stored.quarantine.items():
        _report_unseen(subject, partition, rows)


def _seen(
    subject: Subject,
    rows: Quarantined,
    verdicts: Verdicts,
    partition: Partition,
    messages: Sequence[Message],
) -> Seen:
    span, done = subject.coverage.spans[partition], not messages
    offsets = np.array([each.offset() for each in messages], np.int64)
    ranges = span.index(offsets) if messages else _NONE
    inside = ranges >= 0
    if not inside.all():
        messages = [each for each, keep in zip(messages, inside.tolist(), strict=True) if keep]
        offsets, ranges = offsets[inside], ranges[inside]
    np.add.at(span.visible, ranges, 1)
    bad, large = rows.mask(offsets), rows.too_large(offsets)
    skipped = _skipped(subject, verdicts.operations, span, ranges, messages) & ~bad
    np.add.at(span.skipped, ranges[skipped], 1)
    for position in np.flatnonzero(bad).tolist():
        if not rows.same(messages[position]):
            where = f"{shown(partition)}@{offsets[position]}"
            line = f"{where}: quarantine holds other bytes than Kafka"
            subject.findings.add(Kind.DIFFERENT, line)
        entry, too_large = int(span.entries[ranges[position]]), bool(large[position])
        verdicts.judge(partition, messages[position], entry, too_large=too_large)
    return Seen(partition, messages, offsets, ranges, ~bad, skipped, done)


def _skipped(
    subject: Subject,
    readers: EntryReaders,
    span: Span,
    ranges: Offsets,
    messages: Sequence[Message],
) -> Flags:
    """Which records make no row, by their entries: they have no value, or tell of no row."""
    if not subject.skips.any():
        return np.zeros(len(messages), bool)
    entries = span.entries[ranges]
    without = np.array([each.value() is None for each in messages], bool)
    skipped: Flags = without & subject.skips[entries]
    for place in np.flatnonzero(~without & subject.with_events[entries]).tolist():
        skipped[place] = readers.tells_of_no_row(int(entries[place]), messages[place])
    return skipped


def _report_unseen(subject: Subject, partition: Partition, rows: Quarantined) -> None:
    if partition not in subject.readable:
        return
    start, until = subject.readable[partition]
    unseen = np.unique(rows.unseen(start, until))
    wrong = subject.unexplained(partition, unseen)
    removed = len(unseen) - int(wrong.sum())
    line = f"{shown(partition)}: {removed:,} in quarantine: Kafka has no such record"
    subject.findings.leave(Unchecked.COMPACTED, f"{line}, as after compaction", removed)
    what = "in quarantine, but Kafka shows no such record"
    subject.findings.add_offsets(Kind.UNEXPECTED, shown(partition), unseen[wrong], what)
