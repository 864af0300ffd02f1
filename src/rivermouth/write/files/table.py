"""Commits to one Delta table in a folder, by the driver: exactly one version, or none.

The log takes each version once. So a commit at the version after the one that it was planned on
stands only where nobody has committed since. Spark's commits on a local disk are not exact in that
way (``spark.tables``): ``alone`` keeps them away meanwhile.

The names of the data files reach the disk before a commit, and the commit before anybody is told of
it, with those of others since the last one: a log with a hole cannot be read. A checkpoint reaches
the disk before the commits in it are cleaned up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from deltalake import DeltaTable

from rivermouth.debug import reach
from rivermouth.errors import BatchFailed, CommitConflict, LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.ways import Definition
from rivermouth.warehouse.delta.actions import AddFile, Commit
from rivermouth.warehouse.delta.log import DeltaLog, path_of
from rivermouth.warehouse.delta.state import LOG
from rivermouth.warehouse.delta.store import STORE_FAULTS
from rivermouth.write.files.data_files import DataFile

Alone = Callable[[Callable[[], object]], object]
"""Does something while nobody else can replace what is committed."""

_OTHERS = 100
"""So many commits before our first one are made to reach the disk, or as many as lie between two
checkpoints: the newest of these is not as old."""


class FilesTable:
    """The table at ``path``, which exists. ``where`` names it in errors.

    Each commit is made by ``alone``.
    """

    def __init__(self, path: str, where: str, alone: Alone = lambda act: act()) -> None:
        self.path, self._where, self._alone = path, where, alone
        self._log = DeltaLog.of_folder(Path(path))
        self._synced: int | None = None  # up to this version, commits have reached the disk

    def exists(self) -> bool:
        """Whether there is a table: an empty folder of a log is none."""
        return self._newest() >= 0

    def newest(self) -> int:
        """The newest version; what is told and committed from now on is as of it."""
        newest = self._newest()
        if newest < 0:
            raise self._failed("the log cannot be read", "no table there")
        return newest

    def _newest(self) -> int:
        try:
            self._log.follow()
        except (LogUnreadable, LedgerBroken) as fault:
            raise self._failed("the log cannot be read", fault) from fault
        return self._log.state.version

    def definition(self) -> Definition:
        """What the log says of the table, as of ``newest``."""
        return self._log.state.definition

    def txn(self, app: str) -> int:
        """The version of the newest ``txn`` of ``app``; 0: there is none."""
        return self._log.state.txns.get(app, 0)

    def may(self, plan: CommitPlan) -> bool:
        """Whether the plan is not stale, as Delta would say.

        What is committed from now on follows on the version that was seen here. Raises
        CommitConflict where somebody has committed since the plan, and BatchFailed where the log no
        longer holds the version of the plan: the next opening tells why.
        """
        newest = self.newest()
        if plan.base is not None and newest < plan.base:
            raise self._shorter(newest, plan.base)
        if plan.base is not None and newest > plan.base:
            raise self._conflict(newest)
        return self.txn(plan.app) < plan.sequence

    def commit(self, plan: CommitPlan, entry: Entry, files: Sequence[DataFile] = ()) -> None:
        """Make the commit of the plan, which ``may`` allows. Raises as ``append``."""
        reach("P17")
        self.append(files, to_json(entry), (plan.app, plan.sequence))
        reach("P18")
        self.keep_up()

    def append(
        self, files: Sequence[DataFile], said: str, txn: tuple[str, int] | None = None
    ) -> None:
        """Commit the files with ``said`` as metadata.

        With a ``txn``: as the version that follows on ``newest``. Raises CommitConflict where
        somebody has committed that version; BatchFailed where the log cannot be written; and what
        ``alone`` does.
        """
        added = [AddFile(each.name, each.size, each.modified_ms, each.statistics) for each in files]
        metrics = {
            "numFiles": len(files),
            "numOutputRows": sum(sum(each.records.values()) for each in files),
            "numOutputBytes": sum(each.size for each in files),
        }
        commit = Commit(
            "WRITE",
            said,
            dict([txn] if txn else []),
            added,
            metrics=metrics,
            parameters={"mode": "Append"},
            blind=True,
        )
        self._alone(partial(self._commit, commit, following=txn is not None))

    def _commit(self, commit: Commit, *, following: bool) -> None:
        try:
            self._log.store.sync_names(each.path for each in commit.added)
            self._sync_others()
            while not self._log.commit(commit):
                if following:
                    raise self._conflict(self._log.state.version + 1)
                self.newest()
                self._sync_others()
        except STORE_FAULTS as fault:
            raise self._failed("the commit cannot be written", fault) from fault
        self._synced = self._log.state.version

    def _sync_others(self) -> None:
        """The commits of others before ours; they may be cleaned up already."""
        newest = self._log.state.version
        if self._synced is None:
            first = newest + 1 - max(_OTHERS, self.definition().checkpoint_interval)
        else:
            first = self._synced + 1
        self._log.store.sync_objects(map(path_of, range(max(first, 0), newest + 1)))

    def _conflict(self, version: int) -> CommitConflict:
        """Why a commit is not made: somebody else's is the version ``version``."""
        what = "commits of others were in the way"
        return CommitConflict(what, where=self._where, found=f"version {version} is another's")

    def _shorter(self, version: int, base: int) -> BatchFailed:
        """Why a commit is not made: the log ends with ``version``, and was longer before."""
        return BatchFailed(
            "the table's log was cut, or made anew",
            where=self._where,
            expected=f"version {base}, which was read before",
            found=f"version {version} is the newest",
        )

    def keep_up(self) -> None:
        """Write a checkpoint, and let the log be cleaned up, where that is due after a commit.

        Nothing depends on it: what fails is due again some commits later.
        """
        definition, version = self.definition(), self._log.state.version
        if version % definition.checkpoint_interval:
            return
        try:
            self._keep_up(version, cleans_up=definition.cleans_up)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of delta-rs is no Exception
            return

    def _keep_up(self, version: int, *, cleans_up: bool) -> None:
        table, log = DeltaTable(self.path, version), Path(self.path, LOG)
        # Hadoop's file system left it beside a hint of Spark's: it would not fit ours.
        sum_of_hint = log / "._last_checkpoint.crc"
        sum_of_hint.unlink(missing_ok=True)
        table.create_checkpoint()
        sum_of_hint.unlink(missing_ok=True)  # Spark may have left one meanwhile
        # What clean-up takes is in the checkpoint alone from then on.
        written = [each.name for each in log.glob(f"{version:020d}.checkpoint*")]
        paths = [f"{LOG}/{each}" for each in (*written, "_last_checkpoint")]
        self._log.store.sync_objects(paths)
        self._log.store.sync_names(paths)
        if cleans_up:
            table.cleanup_metadata()

    def _failed(self, what: str, fault: object) -> BatchFailed:
        return BatchFailed(what, where=self._where, found=str(fault))
