"""One pass over Kafka: exactly the ledger's ranges, and what of them lies in quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from confluent_kafka import Message
from numpy.typing import NDArray

from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Place, shown
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.result import PROBLEM_LINES, Kind
from rivermouth.verify.subject import Subject

Progress = Callable[[str, int, int], None]
"""Called with pipeline, offsets done, offsets in all."""

_AT_ONCE = 16
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Seen:
    """Visible records of one partition, ascending; ``good`` are those not in quarantine.

    ``ranges`` holds the index of each record's range in its ``Span``; ``done`` says that
    the partition has been read to its end.
    """

    place: Place
    messages: Sequence[Message]
    offsets: Offsets
    ranges: Offsets
    good: NDArray[np.bool_]
    done: bool


def replay(
    subject: Subject, quarantine: Mapping[Place, Quarantined], progress: Progress
) -> Iterator[Seen]:
    """Yield the visible records of every covered partition, a few partitions at a time.

    Counts them per range, compares quarantined ones with the raw record, and at the end
    reports quarantined offsets that Kafka does not show.
    """
    total, done = subject.coverage.total(), 0
    places = iter(subject.readable.items())
    while group := dict(islice(places, _AT_ONCE)):
        reached = {place: start for place, (start, _) in group.items()}
        done += sum(start - subject.coverage.spans[place].start for place, start in reached.items())
        for place, messages in subject.source.read(group):
            now = int(messages[-1].offset() or 0) + 1 if messages else group[place][1]
            done, reached[place] = done + now - reached[place], now
            progress(subject.pipeline.name, done, total)
            yield _seen(subject, quarantine, place, messages)
    for place, rows in quarantine.items():
        _report_unseen(subject, place, rows)


def _seen(
    subject: Subject,
    quarantine: Mapping[Place, Quarantined],
    place: Place,
    messages: Sequence[Message],
) -> Seen:
    span, done = subject.coverage.spans[place], not messages
    offsets = np.array([each.offset() for each in messages], np.int64)
    ranges = span.index(offsets) if messages else _NONE
    inside = ranges >= 0
    if not inside.all():
        messages = [each for each, keep in zip(messages, inside.tolist(), strict=True) if keep]
        offsets, ranges = offsets[inside], ranges[inside]
    np.add.at(span.visible, ranges, 1)
    rows = quarantine.get(place)
    bad = rows.mask(offsets) if rows is not None else np.zeros(len(offsets), bool)
    if rows is not None:
        for position in np.flatnonzero(bad).tolist():
            if not rows.same(messages[position]):
                line = f"{shown(place)}@{offsets[position]}: quarantine holds other bytes"
                subject.findings.add(Kind.DIFFERENT, line)
    return Seen(place, messages, offsets, ranges, ~bad, done)


def _report_unseen(subject: Subject, place: Place, rows: Quarantined) -> None:
    if place not in subject.readable:
        return
    start, until = subject.readable[place]
    unseen = np.unique(rows.unseen(start, until))
    if len(unseen):
        unseen = unseen[unseen >= subject.source.lows([place])[place]]
    if place[0] in subject.compacted:
        unseen = unseen[:0]
    lines = [
        f"{shown(place)}@{offset}: in quarantine, but Kafka shows no such record"
        for offset in unseen[:PROBLEM_LINES].tolist()
    ]
    subject.findings.add(Kind.UNEXPECTED, *lines, count=len(unseen))
