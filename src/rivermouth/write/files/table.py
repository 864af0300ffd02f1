"""Commits to one Delta table, by the driver: exactly one version, or none.

The log takes each version once. So a commit at the version after the one that it was planned on
stands only where nobody has committed since. Spark's commits on a local disk are not exact in that
way (``spark.tables``): ``alone`` keeps them away meanwhile.

The names of the data files reach the disk before a commit, and the commit before anybody is told of
it, with those of others since the last one: a log with a hole cannot be read. A checkpoint reaches
the disk before the commits in it are cleaned up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath

from rivermouth.debug import reach
from rivermouth.errors import BatchFailed, CommitConflict, LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.ways import Definition
from rivermouth.storage.store import STORE_FAULTS, Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.warehouse.delta.log import DeltaLog, path_of
from rivermouth.warehouse.delta.state import LOG
from rivermouth.write.files.data_files import DataFile

Alone = Callable[[Callable[[], object]], object]
"""Does something while nobody else can replace what is committed."""

_OTHERS = 100
"""So many commits before our first one are made to reach the disk, or as many as lie between two
checkpoints: the newest of these is not as old."""


class FilesTable:
    """The table in ``store``, which exists. ``where`` names it in errors.

    Each commit is made by ``alone``. ``files``: see ``DeltaLog``. ``beside``: checkpoints are
    written beside what follows, and ``settle`` waits for the last one: they take longer the more
    files were removed lately, each new vector of a file among them.
    """

    def __init__(
        self,
        store: Store,
        where: str,
        alone: Alone = lambda act: act(),
        *,
        files: bool = False,
        beside: bool = False,
    ) -> None:
        self.store, self._where, self._alone = store, where, alone
        self.log = DeltaLog(store, files=files)
        self._beside, self._keeping = beside, list[threading.Thread]()
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
            self.log.follow()
        except (LogUnreadable, LedgerBroken) as fault:
            raise self._failed("the log cannot be read", fault) from fault
        return self.log.state.version

    def definition(self) -> Definition:
        """What the log says of the table, as of ``newest``."""
        return self.log.state.definition

    def txn(self, app: str) -> int:
        """The version of the newest ``txn`` of ``app``; 0: there is none."""
        return self.log.state.txns.get(app, 0)

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

    def looked_at(
        self, plan: CommitPlan, beside: Callable[[], Definition | None]
    ) -> tuple[bool, Definition | None]:
        """See ``may``, and what is asked for beside it."""
        found: list[bool | Definition | None] = self.store.together(partial(self.may, plan), beside)
        allowed, other = found
        return bool(allowed), other if isinstance(other, Definition) else None

    def commit(self, plan: CommitPlan, entry: Entry, change: Commit | None = None) -> None:
        """Make the commit of the plan, which ``may`` allows; without a change, of its entry alone.

        It is the version that follows on ``newest``. Raises CommitConflict where somebody has
        committed that version; BatchFailed where the log cannot be written; and what ``alone``
        does.
        """
        reach("P17")
        said, txns = to_json(entry), {plan.app: plan.sequence}
        commit = replace(change or appended(()), said=said, txns=txns)
        self._alone(partial(self._commit, commit, following=True))
        reach("P18")
        self.keep_up()

    def also(self, commit: Commit) -> None:
        """Make one more commit that follows on the newest that was seen. Raises as ``commit``."""
        self._alone(partial(self._commit, commit, following=True))
        self.keep_up()

    def after_others(self, commit: Commit) -> None:
        """Make a commit after whatever others commit meanwhile. Raises as ``commit``."""
        self._alone(partial(self._commit, commit, following=False))
        self.keep_up()

    def _commit(self, commit: Commit, *, following: bool) -> None:
        try:
            paths = (PurePosixPath(each.path) for each in commit.added)
            # Of a partition the names of its folders, too.
            named = {str(e) for path in paths for e in (path, *path.parents) if e.name}
            self.store.sync_names(named)
            self._sync_others()
            while not self.log.commit(commit):
                if following:
                    raise self._conflict(self.log.state.version + 1)
                self.newest()
                self._sync_others()
        except STORE_FAULTS as fault:
            raise self._failed("the commit cannot be written", fault) from fault
        self._synced = self.log.state.version

    def _sync_others(self) -> None:
        """The commits of others before ours; they may be cleaned up already."""
        newest = self.log.state.version
        if self._synced is None:
            first = newest + 1 - max(_OTHERS, self.definition().checkpoint_interval)
        else:
            first = self._synced + 1
        self.store.sync_objects(map(path_of, range(max(first, 0), newest + 1)))

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
        definition, version = self.definition(), self.log.state.version
        if version % definition.checkpoint_interval:
            return
        if not self._beside:
            self._try_to_keep_up(version, cleans_up=definition.cleans_up)
            return
        if any(each.is_alive() for each in self._keeping):
            return
        kept_up = partial(self._try_to_keep_up, version, cleans_up=definition.cleans_up)
        self._keeping = [threading.Thread(target=kept_up, name="checkpoint")]
        self._keeping[0].start()

    def settle(self) -> None:
        """Wait for what goes on beside."""
        for each in self._keeping:
            each.join()

    def _try_to_keep_up(self, version: int, *, cleans_up: bool) -> None:
        try:
            self._keep_up(version, cleans_up=cleans_up)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of delta-rs is no Exception
            return

    def _keep_up(self, version: int, *, cleans_up: bool) -> None:
        table, folder = self.store.delta_rs(version), self.store.folder
        if folder is None:
            table.create_checkpoint()
        else:
            # Hadoop's file system left it beside a hint of Spark's: it would not fit ours.
            sum_of_hint = folder / LOG / "._last_checkpoint.crc"
            sum_of_hint.unlink(missing_ok=True)
            table.create_checkpoint()
            sum_of_hint.unlink(missing_ok=True)  # Spark may have left one meanwhile
            # What clean-up takes is in the checkpoint alone from then on.
            written = [each.name for each in (folder / LOG).glob(f"{version:020d}.checkpoint*")]
            paths = [f"{LOG}/{each}" for each in (*written, "_last_checkpoint")]
            self.store.sync_objects(paths)
            self.store.sync_names(paths)
        if cleans_up:
            table.cleanup_metadata()

    def _failed(self, what: str, fault: object) -> BatchFailed:
        return BatchFailed(what, where=self._where, found=str(fault))


def appended(files: Sequence[DataFile]) -> Commit:
    """The commit that adds these files."""
    added = [each.added for each in files]
    metrics = {
        "numFiles": len(files),
        "numOutputRows": sum(each.rows for each in files),
        "numOutputBytes": sum(each.size for each in files),
    }
    return Commit("WRITE", added=added, metrics=metrics, parameters={"mode": "Append"}, blind=True)
