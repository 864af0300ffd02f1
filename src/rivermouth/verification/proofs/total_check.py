"""Checking one key of a table of totals: what its records add up to against its row.

The entries count in their order. If the totals of a key fit their columns after an entry, and so
do the sums of that entry alone, all its good records of that key count; else all of them are in
quarantine, as too large, and the next entry adds to what was there before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from rivermouth.verification.formats.reader import NOT_VERIFIABLE, CannotTell, Undecodable
from rivermouth.verification.ledger.entry import shown
from rivermouth.verification.proofs.decoding import EntryReaders, check_key, decoded, key_part
from rivermouth.verification.proofs.key_check import shown_key
from rivermouth.verification.proofs.key_rules import Key
from rivermouth.verification.proofs.measures import Metric, State
from rivermouth.verification.proofs.proof import plain, size
from rivermouth.verification.proofs.quarantine import Quarantined
from rivermouth.verification.proofs.replay import Seen
from rivermouth.verification.proofs.spill import Buckets
from rivermouth.verification.result import Kind, count
from rivermouth.verification.subject import Subject

_GROUPS = 50_000
_HASHES = 500_000


class Added(NamedTuple):
    """What some records of one key and one entry add.

    ``good``: they are not in quarantine; of others only sums are told. ``unknown``: a bit for each
    metric of which a value cannot be told.
    """

    entry: int
    good: bool
    records: int
    unknown: int
    states: tuple[State, ...]


class TotalRecords:
    """Adds records up, and puts what they add into ``buckets``: some of it early, to bound memory.

    ``unknown`` counts good records of which nobody can tell the key; ``unjudged`` those in
    quarantine as too large.
    """

    def __init__(
        self, subject: Subject, schema: pa.Schema, metrics: Sequence[Metric], buckets: Buckets
    ) -> None:
        columns = [each.name for each in subject.pipeline.columns]
        self.unknown = self.unjudged = 0
        self._subject = subject
        self._metrics = metrics
        self._buckets = buckets
        # A record is bad if any column does not fit, so all of them are read.
        self._readers = EntryReaders(subject, schema, columns)
        parts = subject.pipeline.target.key_parts
        self._parts = [(columns.index(each.column), each.width_us) for each in parts]
        places = [-1 if each.column is None else columns.index(each.column) for each in metrics]
        every = [*enumerate(zip(metrics, places, strict=True))]
        sums = [each for each in every if each[1][0].function == "sum"]
        self._wanted = {True: every, False: sums}
        self._open: dict[tuple[Key, int, bool], _Group] = {}
        self._hashed = 0

    def see(self, seen: Seen, quarantined: Quarantined) -> None:
        """Add the records that are good, and those that are in quarantine as too large."""
        if not seen.messages:
            return
        entries = self._subject.coverage.spans[seen.partition].entries[seen.ranges]
        large = quarantined.too_large(seen.offsets)
        facts = zip(
            seen.messages, entries.tolist(), seen.good.tolist(), large.tolist(), strict=True
        )
        for message, entry, good, too_large in facts:
            if not (good or too_large):
                continue
            try:
                self._add(*self._read(message, entry), entry, good=good)
            except Undecodable as fault:
                if good:
                    where = f"{shown(seen.partition)}@{message.offset()}"
                    line = f"{where}: not in quarantine, but verify cannot decode it: {fault}"
                    self._subject.findings.add(Kind.DIFFERENT, line)
            except CannotTell:
                self.unknown += good
                self.unjudged += not good

    def flush(self) -> None:
        """Put everything into the buckets."""
        for (key, entry, good), group in self._open.items():
            pairs = zip(self._metrics, group.states, strict=True)
            states = tuple(metric.on_disk(state) for metric, state in pairs)
            added = Added(entry, good, group.records, group.unknown, states)
            self._buckets.add(key, added, size(states))
        self._open.clear()
        self._hashed = 0

    def _read(self, message: Message, entry: int) -> tuple[Key, tuple[Any, ...]]:
        found = decoded(self._readers.of(entry), self._readers.value(entry, message))
        key = tuple(key_part(found[place], width) for place, width in self._parts)
        check_key(key)
        return plain(key), found

    def _add(self, key: Key, found: tuple[Any, ...], entry: int, *, good: bool) -> None:
        group = self._open.get((key, entry, good))
        if group is None:
            group = self._open[key, entry, good] = _Group([None] * len(self._metrics))
        group.records += 1
        for index, (metric, place) in self._wanted[good]:
            value = True if place < 0 else found[place]
            if value is NOT_VERIFIABLE:
                group.unknown |= 1 << index
            elif value is not None:
                state = group.states[index]
                more = metric.begun(value) if state is None else metric.with_value(state, value)
                group.states[index] = more
                self._hashed += metric.function == "approx_distinct"
        if len(self._open) >= _GROUPS or self._hashed >= _HASHES:
            self.flush()


class _Group:
    def __init__(self, states: list[State]) -> None:
        self.records = self.unknown = 0
        self.states = states


@dataclass(frozen=True)
class Knowledge:
    """How much of what was added can still be told.

    ``all``: every record of every entry. Else ``some``: what is visible was added, and nothing was
    taken away; else nothing is compared. ``keys``: the key of every record that is visible.
    ``large``: the key of every record in quarantine as too large.
    """

    all: bool = True
    some: bool = True
    keys: bool = True
    large: bool = True


@dataclass
class _Batch:
    """What one entry adds to a key; lists are those in quarantine first, then the good ones."""

    records: list[int] = field(default_factory=lambda: [0, 0])
    states: list[tuple[State, ...]] = field(default_factory=lambda: [(), ()])
    unknown: int = 0


class KeyTotals:
    """What the records of one key add, put together as it comes."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.batches: dict[int, _Batch] = {}
        self.states: list[State] = [None] * len(metrics)
        self.unknown = 0
        self.records = 0
        self._metrics = metrics

    def add(self, facts: tuple[Any, ...]) -> None:
        """Take the facts of an ``Added``; sums are kept for each entry, all others in one."""
        added = Added(*facts)
        batch = self.batches.setdefault(added.entry, _Batch())
        batch.records[added.good] += added.records
        batch.unknown |= added.unknown
        sums = [each.function == "sum" for each in self._metrics]
        old = batch.states[added.good] or (None,) * len(sums)
        batch.states[added.good] = tuple(
            each.joined(before, now) if is_sum else None
            for each, is_sum, before, now in zip(
                self._metrics, sums, old, added.states, strict=True
            )
        )
        if added.good:
            self.unknown |= added.unknown
            self.records += added.records
            self.states = [
                each.joined(before, now)
                for each, before, now in zip(self._metrics, self.states, added.states, strict=True)
            ]


class TotalCheck:
    """Checks keys one by one. ``keys`` counts those that cannot be compared, ``values`` totals of
    which a value cannot be told, ``verdicts`` records that nobody can judge to be too large.
    """

    def __init__(
        self,
        subject: Subject,
        metrics: Sequence[Metric],
        kinds: Sequence[pa.DataType],
        knowledge: Knowledge,
    ) -> None:
        self.keys = self.values = self.verdicts = 0
        self._subject = subject
        self._metrics = metrics
        self._kinds = kinds
        """The types of the key columns, then of the metrics."""
        self._knows = knowledge

    def check(self, key: Key, totals: KeyTotals, rows: Sequence[Sequence[Any]]) -> None:
        """Compare what the records of a key add up to with its rows in the table."""
        name = shown_key(tuple(map(_shown, key, self._kinds)))
        self._judge(name, totals)
        if len(rows) > 1:
            line = f"key {name}: {len(rows)} rows"
            self._subject.findings.add(Kind.DUPLICATED, line, count=len(rows) - 1)
        if not self._knows.some:
            self.keys += 1
        elif not rows:
            if totals.records:
                records = count(totals.records, "record")
                line = f"key {name}: found no row, expected the totals of {records}"
                self._subject.findings.add(Kind.MISSING, line)
        elif totals.records:
            self._compare(name, totals, rows[0])
        elif self._knows.all and self._knows.keys:
            line = f"key {name}: found a row, expected none"
            self._subject.findings.add(Kind.UNEXPECTED, line)
        else:
            self.keys += 1

    def _judge(self, name: str, totals: KeyTotals) -> None:
        """Whether just those records are in quarantine as too large that have to be there."""
        sums = [index for index, each in enumerate(self._metrics) if each.function == "sum"]
        so_far: dict[int, State] = dict.fromkeys(sums)
        unknown = False
        for entry, batch in sorted(totals.batches.items()):
            unknown = unknown or any(batch.unknown >> index & 1 for index in sums)
            known = self._knows.all and self._knows.keys and self._knows.large and not unknown
            if known:
                self._judge_batch(name, entry, batch, so_far)
            else:
                self.verdicts += batch.records[False]
            for index in sums:
                good = batch.states[True][index] if batch.states[True] else None
                so_far[index] = self._metrics[index].joined(so_far[index], good)

    def _judge_batch(
        self, name: str, entry: int, batch: _Batch, so_far: Mapping[int, State]
    ) -> None:
        beyond: list[str] = []
        in_any_order = True
        for index, before in so_far.items():
            metric = self._metrics[index]
            bad, good = (each[index] if each else None for each in batch.states)
            added = metric.joined(bad, good)
            in_any_order = in_any_order and metric.fits_in_any_order(added)
            if not (metric.fits(added) and metric.fits(metric.joined(before, added))):
                beyond.append(metric.name)
        sequence = self._subject.ledger.effective[entry].sequence
        where = f"key {name}, entry {sequence}"
        if beyond and batch.records[True]:
            records = count(batch.records[True], "record")
            line = f"{where}: {records} not in quarantine, but too large for {', '.join(beyond)}"
            self._subject.findings.add(Kind.FAULT, line, count=batch.records[True])
        elif not (beyond or in_any_order):
            self.verdicts += batch.records[False]
        elif not beyond and batch.records[False]:
            records = count(batch.records[False], "record")
            line = f"{where}: {records} in quarantine as too large, but the totals fit"
            self._subject.findings.add(Kind.QUARANTINE, line, count=batch.records[False])

    def _compare(self, name: str, totals: KeyTotals, row: Sequence[Any]) -> None:
        differing: list[str] = []
        impossible: list[str] = []
        kinds = self._kinds[-len(self._metrics) :]
        facts = zip(self._metrics, totals.states, row, kinds, strict=True)
        for index, (metric, state, found, kind) in enumerate(facts):
            if totals.unknown >> index & 1:
                self.values += 1
                continue
            expected = _shown(metric.shown(state), kind)
            line = f"key {name}: {metric.name} is {_shown(found, kind)}, expected {expected}"
            if not metric.agrees(state, found):
                differing.append(line)
            if not metric.may_grow_to(state, found):
                impossible.append(f"{line} or more records")
        if self._knows.all and (self._knows.keys or not differing):
            self._subject.findings.add(Kind.DIFFERENT, *differing)
        elif impossible:
            self._subject.findings.add(Kind.DIFFERENT, *impossible)
        else:
            self.keys += 1


def _shown(value: Any, kind: pa.DataType) -> str:
    """A value as people read it: times as ISO 8601."""
    if value is None:
        return "null"
    if pa.types.is_timestamp(kind):
        return f"{np.datetime64(value, 'us')}{'Z' if kind.tz else ''}"
    return str(np.datetime64(value, "D")) if pa.types.is_date(kind) else str(value)
