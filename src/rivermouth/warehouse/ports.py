"""The ports of a warehouse: what holds a pipeline's ledger, and where its tables lie.

Each has one implementation for a folder and one for a catalog. One behaviour suite runs over both,
and over those in memory that the tests use (``tests/warehouse``).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rivermouth.config import Pipeline, Retry, TableName, pauses
from rivermouth.errors import RivermouthError
from rivermouth.protocol.commits import CommitPlan, CommitRecord, Recorded

if TYPE_CHECKING:  # ``status`` reads ledgers where Spark is not installed
    from pyspark.sql import SparkSession

    from rivermouth.spark.tables import Address
    from rivermouth.storage.lake import Lake


@dataclass(frozen=True)
class TableFacts:
    """What the snapshot of a table says besides its rows.

    ``table_id`` is the id that a table has as long as it is not replaced. ``txn`` is the version of
    the newest ``txn`` of an app; 0: there is none, None: nobody can tell. Log clean-up leaves
    commits readable for ``retention_s`` seconds.
    """

    table_id: str
    txn: int | None
    retention_s: float


class LedgerLog(Protocol):
    """The log of one table. Every method raises LogUnreadable, or LedgerBroken for what it read."""

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order; none where there is no table.

        Versions may start above 0 after log clean-up.
        """

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, in order."""

    def commits_backwards(self) -> Iterator[CommitRecord]:
        """Every readable commit, the newest first; no more is read than is asked for."""

    def newest_record_ms(self, version: int) -> int | None:
        """When the newest record of a commit was written to Kafka, in ms since 1970.

        None where the log does not tell.
        """

    def table(self, app: str) -> TableFacts:
        """What the newest snapshot of the table says, of ``app`` in particular."""


class OffsetsTable(Protocol):
    """The offsets table. Reading raises OffsetsUnreadable, writing ProjectionFailed."""

    def sequence(self, pipeline: str) -> int:
        """The newest sequence projected for the pipeline; 0 where there is none."""

    def newest(self, pipeline: str) -> Recorded | None:
        """The pipeline's newest entry as far as its rows tell; None where there is none.

        They tell its version, commit, cluster, topics and position. All else is empty.
        """

    def rollback_noted(self, pipeline: str) -> int:
        """The version of the target from which on a start found entries rolled back; 0: never."""

    def note_rollback(self, pipeline: str, version: int) -> None:
        """Note that, so that it is known for longer than the log tells of it."""

    def project(self, entries: Sequence[Recorded]) -> None:
        """Write the rows of entries that are not there yet. Each entry has its counts.

        Those of one pipeline are consecutive and in order. Each pipeline has its own ``txn``: so
        there is one commit where the store takes several ``txn`` in one, and else one for each
        pipeline. After an error, each pipeline's rows are there as a whole or not at all.
        """

    def version(self) -> int:
        """The newest version of the table; 0 where that means nothing."""

    def compact(self) -> None:
        """Make small files large. Raises what the store raises; no row changes."""

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """Delete rows of these pipelines' entries from before that time, but for those that
        ``retention`` keeps.

        Raises what the store raises.
        """


@dataclass(frozen=True)
class LedgerStore:
    """Where a pipeline's ledger is read: the log of its table, and the offsets table."""

    log: LedgerLog
    offsets: OffsetsTable


@dataclass(frozen=True)
class LedgerWrites:
    """What else a driver needs to move a ledger on."""

    count: Callable[[Sequence[Recorded]], list[Recorded]]
    """The same entries, each with its counts. Raises ProjectionFailed where it cannot count."""
    record: Callable[[CommitPlan], None]
    """Makes a commit that brings no rows."""
    translate: Callable[[Exception], RivermouthError]
    """A foreign error as one of ours."""


class Warehouse(Protocol):
    """Where the tables of a configuration lie."""

    def address(self, table: TableName) -> Address:
        """How Spark finds a table."""

    @property
    def lake(self) -> Lake | None:
        """Where the tables lie as files; None where they are in a catalog."""

    def offsets(self) -> Address:
        """How Spark finds the offsets table."""

    def hold(self, table: TableName) -> AbstractContextManager[None]:
        """The right to write a table, whose log is looked at before. Raises a Halt."""

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """Where a pipeline's ledger is read; its table exists."""

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """What else moves a pipeline's ledger on."""

    def scratch(self) -> Path | None:
        """A folder that every machine of the cluster sees; None: the driver's own will do."""

    def prepare(self, session: SparkSession, pipeline: Pipeline) -> None:
        """Create the side tables that must exist before the first batch."""


@dataclass(frozen=True)
class Attempts:
    """How often something is attempted, and how long the pauses between are.

    ``pauses`` gives the pauses in seconds, and ends when the time for them is used up. ``pause``
    waits, and says whether to stop trying.
    """

    pauses: Callable[[], Iterator[float]]
    pause: Callable[[float], bool | None] = time.sleep

    @staticmethod
    def by(retry: Retry, stop: threading.Event | None = None) -> Attempts:
        """Attempts for as long as the configuration says, or until ``stop`` is set."""
        pause = stop.wait if stop is not None else time.sleep
        return Attempts(lambda: pauses(retry, random.random, time.monotonic), pause)

    def each(self, at_once: Callable[[], bool] = lambda: False) -> Iterator[int]:
        """The number of each attempt, from 0, after the pause before it; none where ``at_once``.

        Ask for the next one only where an attempt has failed.
        """
        yield 0
        for number, seconds in enumerate(self.pauses(), 1):
            if self.pause(0 if at_once() else seconds):
                return
            yield number


ATTEMPTS = Attempts.by(Retry())
"""Attempts by the defaults of the configuration."""
