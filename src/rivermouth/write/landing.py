"""The port of a landing: stage a batch, wait for the guards, commit it with its entry, follow up.

Every landing has the same steps, and the run takes them in this order (``run.steps``):

stage    read the batch, decode it, write down what nobody sees yet, and say what was counted
guard    Kafka's topics and logs are those that the ledger's offsets belong to; asked meanwhile
commit   bad records into quarantine, then one commit with the rows and the entry of the plan
after    what is left once the commit was read back: rows to send, marked rows to remove
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rivermouth.config import Pipeline
from rivermouth.config.platforms import Platform
from rivermouth.config.registry import LANDINGS, resolve
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import in_bucket
from rivermouth.warehouse.quarantine import QuarantineTable

if TYPE_CHECKING:  # commits of entries alone load nothing of Spark
    from pyspark.sql import DataFrame, SparkSession

    from rivermouth.formats.decoder import Decode
    from rivermouth.storage.store import Store
    from rivermouth.write.rows import Rows


@dataclass(frozen=True)
class RawBatch:
    """Kafka's rows of a batch.

    ``decode`` makes of them all that is known of each record; a landing that needs less, or decodes
    in its tasks, need not call it.
    """

    rows: DataFrame
    decode: Decode

    def decoded(self) -> DataFrame:
        """The rows, decoded."""
        return self.decode(self.rows)


@dataclass(frozen=True)
class Staged:
    """A batch that was staged, and what is left to do with it. Each step is given the plan.

    ``was_read``: its records were read, and will hardly be read again; else ``commit`` reads them.
    ``commit`` raises what Spark raises: only the log, read back, tells what became of the write.
    ``after`` is called once the commit was read back, and nothing has followed from it yet. If it
    raises, the commit stands all the same. ``give_up`` is called instead if ``commit``, or what
    comes before ``after``, ended with a fault; it raises where nobody will do what is left, though
    the commit may stand.
    """

    commit: Callable[[CommitPlan], object]
    was_read: bool = True
    after: Callable[[CommitPlan], object] = lambda plan: None
    give_up: Callable[[CommitPlan, Exception], object] = lambda plan, fault: None


STALE = Staged(lambda plan: None)
"""A batch whose plan is stale: nothing of it is read, and no commit is made, as Delta does it."""


class Landing(Protocol):
    """One way in which the batches of a pipeline land in its table."""

    def stage(self, batch: RawBatch, plan: CommitPlan, stack: ExitStack) -> Staged:
        """Read the batch for the commit of the plan, which goes on by the steps of ``Staged``.

        Nothing is visible yet, and nothing is in quarantine. What the next steps need is kept in
        ``stack``. The counts are in the entry where they are known before the commit. Raises
        CommitConflict where others have committed since the plan.
        """


@dataclass(frozen=True)
class CountedBatch:
    """Decoded rows that can be read several times, and how many each range has."""

    rows: DataFrame
    counts: Counts
    divert: Callable[[DataFrame, CommitPlan, int], object]
    """Puts bad rows into quarantine, so many."""

    @property
    def good(self) -> DataFrame:
        """The rows of records that take effect."""
        return self.rows.where("code IS NULL")

    def write_bad(self, plan: CommitPlan) -> None:
        """Put the bad ones into quarantine, if there are any."""
        from rivermouth.write.evaluation import is_bad, quarantined

        if bad := quarantined(self.counts):
            self.divert(self.rows.where(is_bad()), plan, bad)


@dataclass(frozen=True)
class Site:
    """What a landing has to work with, for one pipeline.

    Spark is started where ``session``, ``rows`` or ``tasks`` are asked for. ``make`` makes the
    rows. ``one_host``: driver and tasks run on one machine. ``jvm``: Spark's JVM is in this
    process, so a batch may be kept in memory. ``staging`` gives a folder of this run alone that
    driver and executors see by the same path. ``store`` and ``bad`` are the objects of the table
    and of its quarantine (None: not where tasks write them). ``kept`` is a folder on the driver's
    own disk that outlives a run (None: there is none), and ``at_end`` takes what is to be done at
    the end of this one. ``others`` are the other pipelines that write the table. ``kafka`` are the
    options of Spark's Kafka client, for those that send.
    """

    spark: Spark
    pipeline: Pipeline
    address: Address
    make: Callable[[], Rows]
    quarantine: QuarantineTable
    one_host: bool
    jvm: bool
    staging: Callable[[], Path]
    store: Store | None = None
    bad: Store | None = None
    kept: Path | None = None
    at_end: Callable[[Callable[[], object]], object] = lambda act: None
    others: tuple[str, ...] = ()
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def session(self) -> SparkSession:
        """The session of the run."""
        return self.spark.session()

    @cached_property
    def rows(self) -> Rows:
        """What the shape of the pipeline gives to a landing."""
        self.spark.session()  # expressions need a JVM
        return self.make()

    @property
    def tasks(self) -> int | None:
        """How many evaluate a batch now, and write its files; None: as the platform thinks best.

        A cluster grows and shrinks while a run goes on. One that grows where tasks wait would never
        do so if there were no more tasks than it has cores.
        """
        if self.store is None or self._grows:
            return None
        return self.session.sparkContext.defaultParallelism

    @cached_property
    def _grows(self) -> bool:
        told = self.session.sparkContext.getConf()
        dynamic = told.get("spark.dynamicAllocation.enabled", "false")
        return dynamic == "true" and told.get("spark.default.parallelism") is None

    @property
    def reports(self) -> Store:
        """Where tasks tell the driver what they did: on its disk, or beside the data files.

        What dead drivers leave there goes with files that no commit names.
        """
        from rivermouth.storage.store import Store

        shared = None if self.one_host or self.store is None else self.store.within("reports")
        return shared or Store.of_folder(self.stage)

    @cached_property
    def stage(self) -> Path:
        """The one folder of ``staging``, made when it is first asked for."""
        return self.staging()

    def keep(self, rows: DataFrame, plan: CommitPlan, what: str, stack: ExitStack) -> DataFrame:
        """The rows for several reads, in their parts, until ``stack`` is closed: in memory, or in
        files.

        ``what`` tells them from others that are kept of the plan's batch.
        """
        from rivermouth.write.evaluation import persisted

        folder = None if self.jvm else self.stage / f"{plan.commit}-{what}"
        return stack.enter_context(persisted(rows, folder))

    def counted(self, decoded: DataFrame, plan: CommitPlan, stack: ExitStack) -> CountedBatch:
        """Decoded rows for several reads, until ``stack`` is closed.

        Those of a key whose row would overflow are bad, see ``Keyed``. What joins the table is
        kept, too: it is read once, so that all reads tell the same.
        """
        from rivermouth.write.evaluation import grouped_counts
        from rivermouth.write.rows import Keyed, without_overflow

        rows = self.keep(decoded, plan, "decoded", stack)
        if isinstance(self.rows, Keyed) and self.rows.overflows is not None:
            table = self.address.read(rows.sparkSession)
            fitted = self.coalesced(without_overflow(rows, table, self.rows))
            rows = self.keep(fitted, plan, "fitted", stack)
        return CountedBatch(rows, grouped_counts(rows, plan.draft.ranges), self._divert)

    def _divert(self, bad: DataFrame, plan: CommitPlan, seen: int) -> None:
        if not self.in_bucket or self.bad is None:
            self.quarantine.write(bad, plan, seen)
            return
        from rivermouth.write.files.bad_records import QuarantineFiles
        from rivermouth.write.files.bad_rows import write

        write(
            QuarantineFiles(self.bad, self.pipeline.name, self.quarantine.reasons), bad, plan, seen
        )

    @property
    def in_bucket(self) -> bool:
        """Whether the tables lie in an object store, which Spark itself does not see."""
        return in_bucket(self.store)

    def coalesced(self, rows: DataFrame, worth: int | None = None) -> DataFrame:
        """The rows in no more parts than there are tasks, and than they are ``worth``.

        Kafka's rows come in a part for each partition, and each costs a task, and often a file.
        """
        bounds = [each for each in (self.tasks, worth) if each is not None]
        return in_parts(rows, min(bounds, default=None))


def in_parts(rows: DataFrame, tasks: int | None) -> DataFrame:
    """The rows in no more parts than ``tasks``; None: as they come."""
    return rows if tasks is None else rows.coalesce(tasks)


def landing_of(site: Site, platform: Platform) -> Landing:
    """The first registered landing that takes such rows on such a platform.

    It makes the table ready for itself. Raises ConfigError where there is none.
    """
    from rivermouth.write.rows import Keyed, Sent

    keyed, sends = isinstance(site.rows, Keyed), isinstance(site.rows, Sent)
    taken = LANDINGS.first(platform, keyed=keyed, sends=sends)
    make: Callable[[Site], Landing] = resolve(taken.make)
    return make(site)
