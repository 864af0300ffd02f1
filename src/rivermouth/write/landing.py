"""The port of a landing: stage a batch, wait for the guards, commit it with its entry, follow up.

Every landing has the same steps, and the run takes them in this order (``run.steps``):

stage    read the batch, decode it, write down what nobody sees yet, and say what was counted
guard    Kafka's topics and logs are those that the ledger's offsets belong to; asked meanwhile
commit   bad records into quarantine, then one commit with the rows and the entry of the plan
after    what is left once the commit was read back: rows to send, marked rows to remove
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.config.platforms import Platform
from rivermouth.config.registry import LANDINGS, resolve
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.ways import Way
from rivermouth.spark.tables import Address
from rivermouth.write.evaluation import persisted
from rivermouth.write.rows import RECORDS, Keyed, Rows, Sent, without_overflow

Decode = Callable[[DataFrame], DataFrame]
"""Makes decoded rows (``formats.tasks``) of Kafka's."""


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
class Changes:
    """Changes by key that were folded before, see ``Keyed.fold``, of about so many ``records``.

    They are read several times. Their commit carries the entry of a plan without counts.
    """

    rows: DataFrame
    records: int


def nothing(plan: CommitPlan) -> None:
    """A step that has nothing to do."""


def passed_on(plan: CommitPlan, fault: Exception) -> None:
    """What becomes of a fault where no row waits for its commit: it is raised as it is."""


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
    after: Callable[[CommitPlan], object] = nothing
    give_up: Callable[[CommitPlan, Exception], object] = passed_on


STALE = Staged(nothing)
"""A batch whose plan is stale: nothing of it is read, and no commit is made, as Delta does it."""


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

    def stage(self, batch: RawBatch | Changes, plan: CommitPlan, held: ExitStack) -> Staged:
        """Read the batch for the commit of the plan, which goes on by the steps of ``Staged``.

        Nothing is visible yet, and nothing is in quarantine. What is kept for the next steps is
        kept in ``held``. The counts are in the entry where they are known before the commit.
        Raises CommitConflict where others have committed since the plan, and TypeError for
        ``Changes`` where the landing takes no changes by key.
        """

    def record(self, session: SparkSession, plan: CommitPlan) -> None:
        """Make a commit of the plan that brings no rows, but an entry alone."""

    def way(self) -> Way | None:
        """In which way commits are made now; None: on this platform there is no choice.

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

    @cached_property
    def stage(self) -> Path:
        """The one folder of ``staging``, made when it is first asked for."""
        return self.staging()

    def kept_in(self, plan: CommitPlan) -> Path | None:
        """Where the batch of a plan is kept for several reads; None: in memory."""
        return None if self.cache else self.stage / plan.commit

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
        with persisted(decoded, folder) as rows:
            fit = without_overflow(rows, self.address.read(decoded.sparkSession), self.rows)
            if fit is rows:
                yield rows
                return
            beside = None if folder is None else folder.with_name(f"{folder.name}-fitted")
            with persisted(fit, beside) as batch:
                yield batch

    def coalesced(self, rows: DataFrame) -> DataFrame:
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
