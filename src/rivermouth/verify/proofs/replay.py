"""One pass over Kafka: exactly the ranges of the ledger, and which records are quarantined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.kafka.readable import leave_out_expired
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.proof import Progress, Stored
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.verdicts import Verdicts
from rivermouth.verify.result import PROBLEM_LINES, Kind, Unchecked
from rivermouth.verify.subject import Subject

_PARTITIONS_AT_ONCE = 16
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Seen:
    """Visible records of one partition, ascending; ``good`` are those not in quarantine.

    ``ranges`` holds the index of each record's range in its ``Span``. ``done``: the partition has
    been read to its end; comes once for each partition, with no records.
    """

    partition: Partition
    messages: Sequence[Message]
    offsets: Offsets
    ranges: Offsets
    good: NDArray[np.bool_]
    done: bool


def replay(subject: Subject, stored: Stored, progress: Progress) -> Iterator[Seen]:
    """Yield the visible records of every covered partition, a few partitions at a time.

    Counts them per range, compares quarantined ones with the raw record, judges whether they belong
    in quarantine, and at the end leaves out what expired meanwhile and reports quarantined offsets
    that Kafka does not show. Raises SourceError.
    """
    quarantine = stored.quarantine
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
            yield _seen(subject, quarantine.get(partition), verdicts, partition, messages)
    leave_out_expired(subject.readable, subject.source, subject.findings)
    verdicts.report()
    for partition, rows in quarantine.items():
        _report_unseen(subject, partition, rows)


def _seen(
    subject: Subject,
    rows: Quarantined | None,
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
    bad = rows.mask(offsets) if rows is not None else np.zeros(len(offsets), bool)
    if rows is not None:
        large = rows.too_large(offsets)
        for position in np.flatnonzero(bad).tolist():
            if not rows.same(messages[position]):
                where = f"{shown(partition)}@{offsets[position]}"
                line = f"{where}: quarantine holds other bytes than Kafka"
                subject.findings.add(Kind.DIFFERENT, line)
            entry, too_large = int(span.entries[ranges[position]]), bool(large[position])
            verdicts.judge(partition, messages[position], entry, too_large=too_large)
    return Seen(partition, messages, offsets, ranges, ~bad, done)


def _report_unseen(subject: Subject, partition: Partition, rows: Quarantined) -> None:
    if partition not in subject.readable:
        return
    start, until = subject.readable[partition]
    unseen = np.unique(rows.unseen(start, until))
    wrong = subject.unexplained(partition, unseen)
    if not wrong.all():
        removed = len(unseen) - int(wrong.sum())
        line = f"{shown(partition)}: {removed:,} in quarantine: Kafka has no such record"
        subject.findings.leave(Unchecked.COMPACTED, f"{line}, as after compaction", removed)
    unseen = unseen[wrong]
    lines = [
        f"{shown(partition)}@{offset}: in quarantine, but Kafka shows no such record"
        for offset in unseen[:PROBLEM_LINES].tolist()
    ]
    subject.findings.add(Kind.UNEXPECTED, *lines, count=len(unseen))
