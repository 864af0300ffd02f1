"""The port of a landing: one commit of a decoded batch, with its entry in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.config.platforms import Platform
from rivermouth.config.registry import LANDINGS, resolve
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.ways import Way
from rivermouth.spark.tables import Address
from rivermouth.write.evaluation import kept
from rivermouth.write.rows import RECORDS, Keyed, Rows, Sent, without_overflow

Decode = Callable[[DataFrame], DataFrame]
"""Makes decoded rows (``formats.tasks``) of Kafka's."""
Look = Callable[[CommitPlan], tuple[CommitPlan, bool]]
"""Waits for what Kafka says; gives the plan with it, and whether what was read meanwhile may count.

Raises the Halt that applies, or a SourceError."""


@contextmanager
def looked_before() -> Iterator[Look]:
    """A look that is over already."""
    yield lambda plan: (plan, True)


@dataclass(frozen=True)
class RawBatch:
    """Kafka's rows of a batch.

    ``decode`` makes of them all that is known of each record; a landing that needs less, or decodes
    in its tasks, need not call it. ``was_read`` may be called once the rows will hardly be read
    again, so that only the commit is left to make: the next batch is planned meanwhile. ``looking``
    begins a look at Kafka, which goes on in the block beside the reading, see ``LooksBeside``.
    """

    rows: DataFrame
    decode: Decode
    was_read: Callable[[], object] = lambda: None
    looking: Callable[[], AbstractContextManager[Look]] = looked_before

    def decoded(self) -> DataFrame:
        """The rows, decoded."""
        return self.decode(self.rows)


class Quarantine(Protocol):
    """Where bad records go, ahead of the commit that accounts for them.

    ``reasons`` say what the codes of the pipeline's records mean.
    """

    @property
    def address(self) -> Address: ...

    @property
    def reasons(self) -> Mapping[str, str]: ...

    def write(self, bad: DataFrame, plan: CommitPlan, seen: int | None, before: int = 0) -> None:
        """Append the bad rows of a decoded batch under the plan's commit id.

        ``seen`` is how many there were, where that is known; ``before``, how many rows of other
        records there are under that id already. Raises BatchFailed where others were
        written: Kafka has deleted records between two reads of one range.
        """


class Landing(Protocol):
    """One way in which the batches of a pipeline land in its table."""

    def land(self, batch: RawBatch, plan: CommitPlan) -> None:
        """Make the commit of the plan, with the rows of the batch and ``plan.entry(counts)``.

        The counts are in the entry where they are known before the commit. Bad records lie in
        quarantine before. Raises what Spark raises: only the log, read back, tells what became
        of the write.
        """


@runtime_checkable
class Changing(Protocol):
    """A landing of changes by key that takes changes which were folded before."""

    def change(self, changes: DataFrame, entry: Entry, records: int) -> None:
        """Make the commit that carries ``entry``, with ``changes`` (see ``Keyed.fold``).

        They are read several times, and come from about so many ``records``.
        """


@runtime_checkable
class LooksBeside(Protocol):
    """A landing that waits for what Kafka says by itself, before it commits: ``RawBatch.looking``.

    For all others the guards of a batch are asked before it is read.
    """

    @property
    def looks_beside(self) -> bool:
        """Whether it does so."""


@runtime_checkable
class SendsAfter(Protocol):
    """A landing that has something left to do once its commit stands."""

    def after_commit(self, plan: CommitPlan) -> None:
        """Do it. The commit of the plan was read back, and nothing has followed from it yet.

        Raises where it fails: the commit stands all the same.
        """

    def give_up(self, plan: CommitPlan, fault: Exception) -> None:
        """Let go of what was left to do: ``fault`` ended the commit of the plan, or what comes
        after it. Raises where nobody will do it though the commit may stand.
        """


@runtime_checkable
class Records(Protocol):
    """A landing that makes the commits that bring no rows in its own way, too."""

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """Make such a commit, as ``warehouse.spark_commits.record`` does."""


@runtime_checkable
class TellsWay(Protocol):
    """A landing that decides by the table in which way its commits are made."""

    def way(self) -> Way | None:
        """Which way that is now; None: on this platform there is no choice.

        Raises what reading the table's log does.
        """


@dataclass(frozen=True)
class Site:
    """What a landing has to work with, for one pipeline.

    ``tasks`` is how many tasks evaluate a batch, and write its files (None: as the platform thinks
    best). ``cache``: whether a batch may be kept in memory. ``staging``
    gives a folder of this run alone that driver and executors see by the same path. ``others``
    are the other pipelines that write the table. ``config`` and ``kafka``, the options of Spark's
    Kafka client, are for those that send.
    """

    session: SparkSession
    pipeline: str
    address: Address
    rows: Rows
    quarantine: Quarantine
    tasks: int | None
    cache: bool
    staging: Callable[[], Path]
    others: tuple[str, ...] = ()
    config: Pipeline | None = None
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def one_host(self) -> bool:
        """Whether driver and tasks run on one machine."""
        return self.tasks is not None

    def folded(self, changes: DataFrame) -> int | None:
        """How many records are in ``changes``, which were folded and written down.

        None where nobody has to know: on one host Spark computes nothing twice, so that its
        metrics are right. Elsewhere what a lost executor had computed is computed again.
        """
        if self.one_host:
            return None
        [row] = changes.agg(F.sum(RECORDS).alias(RECORDS)).collect()
        return int(row[RECORDS] or 0)

    @contextmanager
    def fitted(self, decoded: DataFrame, folder: Path | None) -> Iterator[DataFrame]:
        """Decoded rows for several reads, see ``kept``.

        Those of a key whose row would overflow are bad, see ``Keyed``. What joins the table is
        kept, too: it is read once, so that all reads tell the same.
        """
        with kept(decoded, folder) as rows:
            fit = without_overflow(rows, self.address.read(decoded.sparkSession), self.rows)
            if fit is rows:
                yield rows
                return
            beside = None if folder is None else folder.with_name(f"{folder.name}-fitted")
            with kept(fit, beside) as batch:
                yield batch

    def few(self, rows: DataFrame) -> DataFrame:
        """The rows in no more parts than there are tasks.

        Kafka's rows come in a part for each partition, and each costs a task, and often a file.
        """
        return rows if self.tasks is None else rows.coalesce(self.tasks)


def landing_of(site: Site, platform: Platform) -> Landing:
    """The first registered landing that takes such rows on such a platform.

    It makes the table ready for itself. Raises ConfigError where there is none.
    """
    keyed, sends = isinstance(site.rows, Keyed), isinstance(site.rows, Sent)
    taken = LANDINGS.first(platform, keyed=keyed, sends=sends)
    make: Callable[[Site], Landing] = resolve(taken.make)
    return make(site)
