"""Keeping one pipeline's ledger while it runs: read it, move it on by a commit, project it.

The only way to move it on is ``commit``: write with an entry, read the log back, judge what
became of the write, and only then say so. What to commit is decided elsewhere.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from rivermouth.debug import trace
from rivermouth.debug.failpoints import reach
from rivermouth.errors import (
    CommitConflict,
    CommitFailed,
    CommitUnknown,
    RivermouthError,
    Superseded,
)
from rivermouth.protocol.entry import CommitRecord, Entry, Outcome, app_id, classify
from rivermouth.protocol.guards import check_ledger
from rivermouth.protocol.history import Chain, Recorded
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.planning import KafkaFacts
from rivermouth.run.report import CommitReport, Listener
from rivermouth.warehouse.ports import Books, trimmed

TRIES = 5
"""How often a batch is written while others' commits conflict with it."""


class Keeper:
    """The ledger of one pipeline, named ``name``, in the table ``table_name``.

    ``identity`` are the settings that give the pipeline its identity.
    """

    def __init__(
        self,
        name: str,
        table_name: str,
        identity: Mapping[str, Any],
        books: Books,
        listener: Listener,
    ) -> None:
        self.name = name
        self.where = f"{name} {table_name}"
        self.chain = Chain(name, self.where)
        self.table = ""
        self._txn = 0
        self._noted = 0
        self._forgotten = False
        self._table_name = table_name
        self._identity = identity
        self._books = books
        self._listener = listener
        self._recorded: list[Recorded] = []

    def read(self) -> None:
        """Read the ledger whole. What is broken in it is left to ``check`` or to a remedy.

        Raises LedgerTrimmed where log clean-up has taken it and the offsets table has not
        kept its end either.
        """
        self._recorded = self.chain.extend(self._books.log.commits())
        self.table = self._books.log.table_id()
        self._txn = self._books.txn(app_id(self.name), self.chain)
        settled = next((each.entry.base for each in self._recorded), -1)
        if self._txn and self.chain.newest is None and not self.chain.faults:
            kept = self._books.kept(self.name, self.where, self._txn)
            settled = kept.version
            self.chain = Chain(self.name, self.where)
            self.chain.adopt(kept.as_entry(self.name, self.table, self._identity))
            self._recorded = self.chain.extend(self._books.log.commits())
        self._noted = self._books.offsets.rollback_noted(self.name)
        answered = any(each.entry.accepts for each in self._recorded)
        self._forgotten = 0 <= settled < self._noted < self.chain.first and not answered

    def check(self) -> None:
        """Raise the Halt that applies where the ledger cannot be gone on from.

        That commits were undone is noted in the offsets table: the log may forget it.
        """
        if self.chain.undone_by is not None:
            with suppress(CommitFailed):  # the halt says more than a note that cannot be made
                self._books.offsets.note_rollback(self.name, self.chain.undone_since)
        check_ledger(self.chain, self._txn, self.projected(), self._forgotten)

    def was_undone(self) -> bool:
        """Whether the newest entry was undone for a while: what was noted then still applies."""
        return self._noted > (self._recorded[-1].version if self._recorded else 0)

    @property
    def recovered(self) -> bool:
        """Whether the ledger's end came from the offsets table: no entry is left in the log."""
        return self.chain.adopted is not None

    @property
    def entries(self) -> list[Entry]:
        """The entries that ``read`` found, in order; before them the one that only the offsets
        table knew. None of them is left once ``catch_up`` has projected them.
        """
        kept = [self.chain.adopted] if self.chain.adopted is not None else []
        return [*kept, *(each.entry for each in self._recorded)]

    def projected(self) -> int:
        """The newest sequence that the offsets table knows."""
        return self._books.offsets.sequence(self.name)

    def catch_up(self) -> int:
        """Project what a dead driver committed and did not project; return how many."""
        stands = self.projected()
        missing = [each for each in self._recorded if each.entry.sequence > stands]
        self._recorded = []
        self._project(self._books.with_rows(missing))
        return len(missing)

    def age_s(self, now: float) -> float:
        """How long ago, in seconds, the newest readable entry was committed; 0: there is none."""
        return now - self._recorded[-1].timestamp_ms / 1000 if self._recorded else 0.0

    def entry(self, facts: KafkaFacts, ranges: tuple[OffsetRange, ...]) -> Entry:
        """The entry that follows on the newest one and covers ``ranges``."""
        newest, position = self.chain.newest, self.chain.position.advance(ranges)
        epochs = {**(newest.epochs if newest else {}), **facts.epochs}
        return Entry(
            pipeline=self.name,
            sequence=self.chain.sequence + 1,
            commit=str(uuid.uuid4()),
            cluster=facts.cluster,
            table=self.table,
            # A topic that was taken out of the configuration keeps its id: it may come back.
            topics={**(newest.topics if newest else {}), **facts.topics},
            ranges=ranges,
            position=position,
            config=self._identity,
            epochs={each: epochs[each] for each in position if each in epochs},
            base=self.chain.version,
            ends=Position({each: end.offset for each, end in facts.ends.items()}),
        )

    def record(self, session: SparkSession, entry: Entry) -> None:
        """Commit an entry that comes with no rows."""
        self.commit(entry, lambda each: self._books.record(session, each))

    def commit(self, entry: Entry, write: Callable[[Entry], object]) -> None:
        """Write, read back, classify, project, report. Raises unless the commit stands, and
        where it stands and another driver's has followed it already.

        Where a commit of others is in the way, the same ranges are written again under the
        same sequence, a few times; never skipped, never widened.
        """
        for left in reversed(range(TRIES)):
            try:
                self._commit(entry, write)
                return
            except CommitConflict:
                if not left:
                    raise
                self._books.pause(random.uniform(0.1, 0.5) * (TRIES - left))
                entry = replace(entry, commit=str(uuid.uuid4()), base=self.chain.version)

    def _commit(self, entry: Entry, write: Callable[[Entry], object]) -> None:
        began = time.monotonic()
        reach("P3")
        ranges, position = trace.listed(entry.ranges), entry.position.as_nested()
        facts = {"sequence": entry.sequence, "ranges": ranges, "position": position}
        trace.step(self.name, "write", commit=entry.commit, **facts)
        fault: Exception | None = None
        try:
            write(entry)
        except Exception as raised:  # whatever it says, only the log knows what happened
            fault = raised
        said = None if fault is None else type(fault).__name__
        trace.step(self.name, "returned", commit=entry.commit, fault=said)
        reach("P6")
        recorded = self._read_back(entry, fault)
        reach("P7")
        standing = self._books.with_rows(recorded)
        self._project(standing)
        reach("P8")
        ours = next(each for each in standing if each.entry.commit == entry.commit)
        self._listener.committed(
            CommitReport(
                pipeline=self.name,
                sequence=entry.sequence,
                table_version=ours.version,
                ranges=entry.ranges,
                rows=ours.entry.rows or (),
                position=ours.entry.position,
                seconds=time.monotonic() - began,
            )
        )
        if recorded[-1].entry.commit != entry.commit:
            raise self._superseded(recorded[-1].entry.sequence, entry)

    def _superseded(self, sequence: int, entry: Entry) -> Superseded:
        return Superseded(
            f"entry {sequence} is another driver's",
            where=self.where,
            expected=f"commit {entry.commit}",
            found=f"commit {self.chain.newest.commit if self.chain.newest else None}",
        )

    def _read_back(self, entry: Entry, fault: Exception | None) -> list[Recorded]:
        """Our entry as it stands in the log; raises what applies where it does not."""
        try:
            since: list[CommitRecord] = list(self._books.log.commits_after(self.chain.version))
        except RivermouthError as unreadable:
            found = str(unreadable)
            if fault is not None:  # it came first, and may well be why
                first = self._books.translate(fault)
                found = f"{first.found or first.what}, and then {found}"
            what = "the log cannot be read back"
            raise CommitUnknown(what, where=self.where, found=found) from (fault or unreadable)
        outcome = classify(entry, since)
        recorded = self.chain.extend(since)
        said = {"commit": entry.commit, "outcome": outcome.value, "version": self.chain.version}
        trace.step(self.name, "read_back", **said)
        if outcome is Outcome.SUPERSEDED or outcome is Outcome.ALREADY_COMMITTED:
            raise self._superseded(entry.sequence, entry)
        absent = outcome is Outcome.ABSENT
        if self.chain.faults and not (absent and entry.accepts):
            raise self.chain.faults[0]
        if absent and fault is not None:
            raise self._books.translate(fault) from fault
        if absent and self.chain.first and self.chain.newest is self.chain.adopted:
            # The first commit after clean-up: Delta passed over it, so the txn is not below it.
            raise trimmed(self.where, f"entry {entry.sequence} or later", self.chain.sequence)
        if absent:
            raise CommitFailed("Delta returned without a commit", where=self.where)
        return recorded

    def _project(self, recorded: list[Recorded]) -> None:
        self._books.offsets.project(recorded, self._table_name)
        if recorded:
            trace.step(self.name, "project", sequence=recorded[-1].entry.sequence)
