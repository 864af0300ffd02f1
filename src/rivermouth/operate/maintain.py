"""Maintenance of a configuration's tables, on a day of its own or beside a run.

Maintenance commits, too, and commits bring on checkpoints and with them log clean-up. So it
leaves alone what a start would halt at, and what has been quiet for so long that the next start
owes a ledger heartbeat.

Small files become large ones, files that no recent version names are removed, and so are the
quarantine rows and the scratch that dead drivers left. No row that counts is touched. A table
whose log may not bear more commits is left alone, see ``maintainable``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.config import OFFSETS_TABLE, Config, Pipeline, Secrets, TableName, unresolved
from rivermouth.errors import BatchFailed, CommitConflict, ConfigError, RivermouthError
from rivermouth.errors.store import StoreRefused
from rivermouth.local.scratch import remove_dead, remove_old
from rivermouth.operate.by_files import ByFiles, committed, understood
from rivermouth.operate.facts import look
from rivermouth.operate.optimize import (
    RETENTION,
    WEEK_HOURS,
    ByDeltalake,
    BySpark,
    Files,
    Upkeep,
    hours,
    remove_orphans,
)
from rivermouth.protocol.assess import assess
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.spark.errors import translate
from rivermouth.spark.session import Spark
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import in_bucket
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.ledger import read_ledger
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.warehouse import warehouse_of


@dataclass(frozen=True)
class TableEntries:
    """The entries at the end of the log of one table, as far as a start reads it.

    ``commits`` are their commit ids, by pipeline and sequence; ``quiet`` says why the table is to
    be left alone, and is empty where it is not.
    """

    commits: Mapping[str, Mapping[int, str]]
    quiet: str = ""


def maintainable(ledgers: Sequence[tuple[Pipeline, LedgerStore]], now_s: float) -> TableEntries:
    """The newest entries of the table that these pipelines write; its offsets table is there.

    Raises the Halt at which a start of any of them would stop for the sake of ledger, offsets
    table, table id and settings (RM408 to RM412, RM415).
    """
    found = [_ledger(pipeline, store, now_s) for pipeline, store in ledgers]
    commits = {
        each.history.pipeline: {entry.sequence: entry.commit for entry in each.known_entries}
        for each in found
    }
    written = [each for each in found if each.newest is not None]
    others = [each.pipeline for ledger in found for each in ledger.others]
    if not written and others:  # clean-up would take what keeps a renamed pipeline from starting
        return TableEntries(commits, f"its entries are of the ledger {others[0]}, see RM408")
    # Where one of them commits, clean-up comes anyway. These owe a heartbeat at their next start.
    quiet = (each.history.recovered is not None or each.is_old(now_s) for each in written)
    if not written or not all(quiet):
        return TableEntries(commits)
    days = min(each.age_s(now_s) for each in written) / 86400
    age = f"no entry for {days:.0f} days" if days else "log clean-up has taken all entries"
    return TableEntries(commits, f"{age}, which the next run writes again first")


def _ledger(pipeline: Pipeline, store: LedgerStore, now_s: float) -> LedgerSnapshot:
    ledger = read_ledger(store, pipeline)
    found = look(store, pipeline, ledger, lambda each: assess(each, None, pipeline, now_s))
    if found.halt is not None:
        raise found.halt
    return found.ledger


FLOOR_HOURS = 24
SCRATCH = "(scratch)"
"""What stands for a pipeline in the report of scratch that could not be removed."""
_ORPHAN_AGE_S = 86400


@dataclass(frozen=True)
class TableReport:
    """What was done to a table, or would be; ``orphans`` are rows, the others data files.

    ``quiet`` says why it was left alone, which is no failure; empty where it was not.
    """

    table: str
    compacted: int = 0
    removed: int = 0
    orphans: int = 0
    quiet: str = ""

    @property
    def counts(self) -> tuple[int, int, int]:
        """Compacted, removed, orphans."""
        return (self.compacted, self.removed, self.orphans)


@dataclass(frozen=True)
class MaintenanceReport:
    """What was done for a pipeline before ``error``, if there was one."""

    pipeline: str
    tables: Sequence[TableReport]
    error: RivermouthError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same facts for machines; ``error`` is null or its facts."""
        return {
            "name": self.pipeline,
            "ok": self.error is None,
            "tables": [vars(each) for each in self.tables],
            "error": self.error.as_dict() if self.error else None,
        }


def check_retention(retain_hours: int) -> None:
    """Raise ConfigError for less than the floor."""
    if retain_hours < FLOOR_HOURS:
        fix = f"at least {FLOOR_HOURS}: batches, readers and RESTORE need the files of a day"
        raise ConfigError((f"--retain-hours is {retain_hours} — {fix}",))


class Maintenance:
    """Maintains pipelines of one configuration.

    ``spark`` is asked for tables that only Spark can maintain. A table that pipelines share, as
    they all do the offsets table, is maintained with the first of them. ``retain_hours``: a table
    that keeps old files for less is refused. ``dry_run`` looks and does nothing. ``clock`` is in
    seconds since 1970; ``secrets`` reads those that the configuration only
    names. Raises ConfigError for a retention below the floor.
    """

    def __init__(
        self,
        config: Config,
        spark: SparkSession | Spark,
        scratch: Path,
        *,
        retain_hours: int = WEEK_HOURS,
        dry_run: bool = False,
        clock: Callable[[], float] = time.time,
        secrets: Secrets = unresolved,
    ) -> None:
        check_retention(retain_hours)
        self._config = config
        self._spark = Spark.of(spark)
        self._scratch = scratch
        self._retain_hours = retain_hours
        self._dry_run = dry_run
        self._now = clock()
        self._until = datetime.fromtimestamp(self._now - _ORPHAN_AGE_S, timezone.utc)
        self._warehouse = warehouse_of(config, self._spark, secrets)
        self._offsets = self._in(self._warehouse.offsets(), OFFSETS_TABLE)
        self._maintained: set[_Table] = set()

    def pipelines(self, names: Sequence[str]) -> list[MaintenanceReport]:
        """Maintain the named pipelines one after another; an error ends only its own.

        Scratch that cannot be removed is the report after them.
        """
        reports = [self._pipeline(self._config.pipelines[name]) for name in names]
        try:
            if not self._dry_run:
                self._clear_scratch()
        except OSError as fault:
            reports.append(MaintenanceReport(SCRATCH, (), _failed(SCRATCH, fault)))
        return reports

    def _pipeline(self, pipeline: Pipeline) -> MaintenanceReport:
        done: list[TableReport] = []
        error: RivermouthError | None = None
        try:
            with self._warehouse.hold(pipeline.target.table):
                self._tables(pipeline, done)
        except CommitConflict as fault:
            error = _lost_to_others(pipeline.name, fault)
        except RivermouthError as fault:
            error = fault
        except Exception as fault:  # a JVM that is gone, a full disk, whatever: its own alone
            error = _failed(pipeline.name, fault)
        return MaintenanceReport(pipeline.name, tuple(done), error)

    def _tables(self, pipeline: Pipeline, done: list[TableReport]) -> None:
        """All tables of a pipeline; what goes wrong with one is raised after the others."""
        target = self._at(pipeline.target.table)
        if not self._exists(target):
            return
        found = self._entries(pipeline)
        quarantine = self._at(pipeline.target.table.quarantine)
        first: Exception | None = None
        for table in (target, quarantine, self._offsets):
            if not self._exists(table):
                continue
            if table == target and found.quiet:
                done.append(TableReport(_short(table), quiet=found.quiet))
                continue
            upkeep = self._upkeep(table)
            self._check_retention(upkeep, _short(table))
            try:
                known = found.commits.get(pipeline.ledger_name, {})
                done.append(self._table(pipeline, table, upkeep, known))
            except (
                PySparkException,
                DeltaError,
                CommitConflict,
            ) as fault:  # lost to a commit of a run, for one
                first = first or fault
        if first is not None:
            raise first

    def _table(
        self, pipeline: Pipeline, table: _Table, upkeep: Upkeep, entries: Mapping[int, str]
    ) -> TableReport:
        """Orphans before files, so that files are not made large to be written anew."""
        quarantine = table == self._at(pipeline.target.table.quarantine)
        orphans = self._orphans(pipeline, table, entries) if quarantine else 0
        files = Files()
        if table not in self._maintained:
            self._maintained.add(table)
            files = upkeep.carry_out(dry_run=self._dry_run)
        return TableReport(_short(table), files.compacted, files.removed, orphans)

    def _check_retention(self, upkeep: Upkeep, table: str) -> None:
        """Refuse a table that lets go of old files sooner than we were told to keep them."""
        retention = upkeep.retention()
        if hours(retention) < self._retain_hours:
            found = f"{table}: {RETENTION} is {retention!r}, --retain-hours {self._retain_hours}"
            raise ConfigError((f"{found} — set the property, or ask for less, 24 at least",))

    def _entries(self, pipeline: Pipeline) -> TableEntries:
        """The entries in the pipeline's table, of all that write it. Raises a Halt of any."""
        if not self._exists(self._offsets):
            why = "there is no offsets table, which the next run creates again first"
            return TableEntries({}, why)
        writers = self._config.writers(pipeline.target.table)
        ledgers = [(each, self._warehouse.ledger(each)) for each in writers]
        return maintainable(ledgers, self._now)

    def _orphans(self, pipeline: Pipeline, quarantine: _Table, entries: Mapping[int, str]) -> int:
        """Remove the pipeline's orphans; return how many rows they are."""
        name = pipeline.ledger_name
        offsets = self._offsets
        if quarantine.store and offsets.store and understood(quarantine.store, partitioned=False):
            upkeep, recorded = ByFiles(quarantine.store, int(self._now * 1000)), offsets.store

            def known(sequences: Collection[int]) -> Mapping[int, str]:
                forgotten = {*sequences} - entries.keys()
                older = committed(recorded, name, forgotten) if forgotten else {}
                return {**older, **entries}

            return upkeep.remove_orphans(name, self._until, known, dry_run=self._dry_run)
        return remove_orphans(
            self._spark.session(),
            quarantine.by_spark(),
            name,
            self._until,
            entries=entries,
            offsets=offsets.address if self._exists(offsets) else None,
            dry_run=self._dry_run,
        )

    def _at(self, table: TableName) -> _Table:
        return self._in(self._warehouse.address(table), table)

    def _in(self, address: Address, table: TableName) -> _Table:
        lake = self._warehouse.lake
        return _Table(address, None if lake is None else lake.store(table))

    def _exists(self, table: _Table) -> bool:
        if table.store is not None:
            return DeltaLog(table.store).definition() is not None
        return self._spark.session().catalog.tableExists(table.address.sql)

    def _upkeep(self, table: _Table) -> Upkeep:
        if table == self._offsets and table.store is not None:
            return ByDeltalake(table.store)
        if table.store is not None and understood(table.store):
            return ByFiles(table.store, int(self._now * 1000))
        return BySpark(self._spark.session(), table.by_spark())

    def _clear_scratch(self) -> None:
        """Remove what dead runs left: a run does so too, when it begins."""
        shared = self._warehouse.scratch()
        for folder in (self._scratch / "checkpoints", self._scratch / "stages"):
            if folder.is_dir():
                remove_dead(folder)
        if shared is not None and shared.is_dir():
            remove_old(shared)


@dataclass(frozen=True)
class _Table:
    """Where a table is; ``store`` is None in a catalog."""

    address: Address
    store: Store | None

    def by_spark(self) -> Address:
        """Where Spark finds it. Raises StoreRefused for one in an object store."""
        if self.store is not None and in_bucket(self.store):
            raise StoreRefused.of_spark(self.store.where, "it asks for more than is understood")
        return self.address


def _short(table: _Table) -> str:
    """``schema.table``, as configurations and queries say it."""
    address = table.address
    return ".".join((address.name or address.path.replace(os.sep, "/").split("/"))[-2:])


def _lost_to_others(where: str, error: RivermouthError) -> CommitConflict:
    again = "The next maintenance tries again"
    return CommitConflict(error.what, where=where, found=error.found, remedy=again)


def _failed(where: str, fault: Exception) -> RivermouthError:
    """What kept us from maintaining it, as an error of ours."""
    error = translate(fault, where)
    if isinstance(error, CommitConflict):
        return _lost_to_others(where, error)
    return BatchFailed(
        "it could not be maintained",
        where=where,
        found=error.found,
        remedy="No row that counts was touched; fix the cause and run maintain again",
    )
