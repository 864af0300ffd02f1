"""Visible records, added up by key and entry: what each batch adds to the row of its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Message

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, CannotTell, Undecodable
from rivermouth.verify.ledger.entry import shown
from rivermouth.verify.proofs import pairing
from rivermouth.verify.proofs.compare import decoded, key_part
from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.proofs.measures import Metric, State
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.proofs.replay import Seen
from rivermouth.verify.proofs.rule import Key
from rivermouth.verify.proofs.spill import Buckets
from rivermouth.verify.result import Kind
from rivermouth.verify.subject import Subject

_GROUPS = 50_000
_HASHES = 500_000


class Added(NamedTuple):
    """What some records of one key and one entry add.

    ``good``: they are not in quarantine; of others only sums are told. ``untold``: a bit for each
    metric of which a value cannot be told.
    """

    entry: int
    good: bool
    records: int
    untold: int
    states: tuple[State, ...]


class TotalRecords:
    """Adds records up, and puts what they add into ``buckets``: some of it early, to bound memory.

    ``untold`` counts good records of which nobody can tell the key; ``unjudged`` those in
    quarantine as too large.
    """

    def __init__(
        self, subject: Subject, schema: pa.Schema, metrics: Sequence[Metric], buckets: Buckets
    ) -> None:
        columns = [each.name for each in subject.pipeline.columns]
        self.untold = self.unjudged = 0
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

    def see(self, seen: Seen, quarantined: Quarantined | None) -> None:
        """Add the records that are good, and those that are in quarantine as too large."""
        if not seen.messages:
            return
        entries = self._subject.coverage.spans[seen.partition].entries[seen.ranges]
        large = seen.good & False if quarantined is None else quarantined.too_large(seen.offsets)
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
                self.untold += good
                self.unjudged += not good

    def flush(self) -> None:
        """Put everything into the buckets."""
        for (key, entry, good), group in self._open.items():
            pairs = zip(self._metrics, group.states, strict=True)
            states = tuple(metric.kept(state) for metric, state in pairs)
            added = Added(entry, good, group.records, group.untold, states)
            self._buckets.add(key, added, pairing.size(states))
        self._open.clear()
        self._hashed = 0

    def _read(self, message: Message, entry: int) -> tuple[Key, tuple[Any, ...]]:
        found = decoded(self._readers.of(entry), message.value())
        key = tuple(key_part(found[place], width) for place, width in self._parts)
        if any(each is NOT_VERIFIABLE for each in key):
            raise CannotTell("a key column")
        if None in key:
            raise Undecodable("a key column is null")
        return pairing.plain(key), found

    def _add(self, key: Key, found: tuple[Any, ...], entry: int, *, good: bool) -> None:
        group = self._open.get((key, entry, good))
        if group is None:
            group = self._open[key, entry, good] = _Group([None] * len(self._metrics))
        group.records += 1
        for index, (metric, place) in self._wanted[good]:
            value = True if place < 0 else found[place]
            if value is NOT_VERIFIABLE:
                group.untold |= 1 << index
            elif value is not None:
                state = group.states[index]
                more = metric.begun(value) if state is None else metric.with_value(state, value)
                group.states[index] = more
                self._hashed += metric.function == "approx_distinct"
        if len(self._open) >= _GROUPS or self._hashed >= _HASHES:
            self.flush()


class _Group:
    def __init__(self, states: list[State]) -> None:
        self.records = self.untold = 0
        self.states = states
