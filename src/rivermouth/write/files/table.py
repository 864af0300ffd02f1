"""Commits of data files to one Delta table in a folder, by delta-rs: exactly one version, or none.

The log takes each version once. So a commit at the version after the one that it was planned on
stands only where nobody has committed since. Spark's commits on a local disk are not exact in that
way (``spark.tables``): ``alone`` keeps them away meanwhile.

delta-rs leaves it to the system when a commit reaches the disk. So the names of the data files are
made to reach it before a commit, and the commit before anybody is told of it, with those of others
since the last one: a log with a hole cannot be read. A checkpoint reaches the disk before the
commits in it are cleaned up.

A commit that somebody else has made since is noticed before one of ours is begun. One that comes
later still is noticed by the log itself, which takes each version once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from rivermouth.debug import reach
from rivermouth.errors import BatchFailed, CommitConflict
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.ways import Definition
from rivermouth.warehouse.folder.log import definition_of
from rivermouth.write.files.data_files import DataFile, sync

Answer = TypeVar("Answer")
Alone = Callable[[Callable[[], object]], object]
"""Does something while nobody else can replace what is committed."""

_TRIAL_BYTES = 1 << 16
_OTHERS = 100
"""So many commits before our first one are made to reach the disk, or as many as lie between two
checkpoints: the newest of these is not as old."""
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class FilesTable:
    """The table at ``path``, which exists. ``where`` names it in errors.

    Each commit is made by ``alone``.
    """

    def __init__(self, path: str, where: str, alone: Alone = lambda act: act()) -> None:
        self.path, self._where, self._alone = path, where, alone
        self._handle: DeltaTable | None = None
        self._synced: int | None = None  # up to this version, commits have reached the disk

    @property
    def exists(self) -> bool:
        """Whether there is a table: an empty folder of a log is none."""
        return DeltaTable.is_deltatable(self.path)

    def newest(self) -> int:
        """The newest version; what is told and committed from now on is as of it."""
        try:
            if self._handle is not None:
                self._handle.update_incremental()
                # It would go on from a version that is no longer there.
                if not self._commit_file(self._handle.version()).exists():
                    self._handle = None
            if self._handle is None:
                self._handle = DeltaTable(self.path)
        except (DeltaError, OSError) as fault:
            self._handle = None
            raise self._failed("the log cannot be read", fault) from fault
        return self._handle.version()

    def definition(self) -> Definition:
        """What the log says of the table, as of ``newest``."""
        return self._ask(definition_of)

    def txn(self, app: str) -> int:
        """The version of the newest ``txn`` of ``app``; 0: there is none."""
        return self._ask(lambda table: table.transaction_version(app)) or 0

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

    def commit(self, plan: CommitPlan, entry: Entry, files: Iterable[DataFile] = ()) -> None:
        """Make the commit of the plan, which ``may`` allows. Raises as ``append``."""
        reach("P17")
        self.append(files, to_json(entry), (plan.app, plan.sequence))
        reach("P18")
        self.keep_up()

    def append(
        self, files: Iterable[DataFile], said: str, txn: tuple[str, int] | None = None
    ) -> None:
        """Commit the files with ``said`` as metadata.

        With a ``txn``: as the version that follows on ``newest``. Raises CommitConflict where
        somebody has committed that version; BatchFailed where the log cannot be written; and what
        ``alone`` does.
        """
        self._alone(partial(self._append, files, said, txn))

    def _append(self, files: Iterable[DataFile], said: str, txn: tuple[str, int] | None) -> None:
        table, added = self._table(), [*files]
        follows = table.version() + 1
        now_ms = int(time.time() * 1000)
        txns = [Transaction(*txn, now_ms)] if txn else []
        retries = 0 if txn else None
        metrics = {
            "numFiles": str(len(added)),
            "numOutputRows": str(sum(sum(each.records.values()) for each in added)),
            "numOutputBytes": str(sum(each.size for each in added)),
        }
        about = {"userMetadata": said, "isBlindAppend": True, "operationMetrics": metrics}
        try:
            sync(Path(self.path))
            table.create_write_transaction(
                [_action(each) for each in added],
                "append",
                table.schema(),
                commit_properties=CommitProperties(about, retries, txns),
                post_commithook_properties=_NO_HOOKS,
            )
            self._sync_commits(follows, follows if txn else self.newest())
        except CommitFailedError as fault:
            if not self._commit_file(follows).exists():
                raise self._failed("the commit cannot be written", self._cause(fault)) from fault
            raise self._conflict(follows) from fault
        except (DeltaError, OSError) as fault:
            raise self._failed("the commit cannot be written", fault) from fault

    def _sync_commits(self, own: int, last: int) -> None:
        """Up to ``last``; what is before ``own`` is of others, and may be cleaned up already."""
        if self._synced is None:
            first = max(own - max(_OTHERS, self.definition().checkpoint_interval), 0)
        else:
            first = self._synced + 1
        for version in range(first, own):
            with suppress(FileNotFoundError):
                sync(self._commit_file(version))
        for version in range(own, last + 1):
            sync(self._commit_file(version))
        sync(Path(self.path, "_delta_log"))
        self._synced = last

    def _sync_checkpoint(self, version: int) -> None:
        """What clean-up takes is in the checkpoint alone from then on."""
        log = Path(self.path, "_delta_log")
        for each in (*log.glob(f"{version:020d}.checkpoint*"), log / "_last_checkpoint", log):
            sync(each)

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
        try:
            self._keep_up()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of delta-rs is no Exception
            self._handle = None

    def _keep_up(self) -> None:
        # Of the commit before: to look into the log again costs as much as a commit.
        interval = self.definition().checkpoint_interval
        if self._synced is not None and self._synced % interval:
            return
        version, definition = self.newest(), self.definition()
        if version % interval:
            return
        # Hadoop's file system left it beside a hint of Spark's: it would not fit ours.
        sum_of_hint = Path(self.path, "_delta_log", "._last_checkpoint.crc")
        sum_of_hint.unlink(missing_ok=True)
        self._table().create_checkpoint()
        sum_of_hint.unlink(missing_ok=True)  # Spark may have left one meanwhile
        self._sync_checkpoint(version)
        if definition.cleans_up:
            self._table().cleanup_metadata()
        self._handle = None  # one that was opened before goes on replaying all commits since

    def _table(self) -> DeltaTable:
        if self._handle is None:
            self.newest()
        assert self._handle is not None
        return self._handle

    def _ask(self, ask: Callable[[DeltaTable], Answer]) -> Answer:
        try:
            return ask(self._table())
        except (DeltaError, OSError) as fault:
            raise self._failed("the log cannot be read", fault) from fault

    def _commit_file(self, version: int) -> Path:
        return Path(self.path, "_delta_log", f"{version:020d}.json")

    def _cause(self, fault: Exception) -> Exception:
        """Why a commit was not written: delta-rs only says how often it tried."""
        trial = Path(self.path, "_delta_log", f".{uuid.uuid4()}.trial")
        try:
            trial.write_bytes(bytes(_TRIAL_BYTES))
        except OSError as cause:
            return cause
        finally:
            with suppress(OSError):
                trial.unlink(missing_ok=True)
        return fault

    def _failed(self, what: str, fault: Exception) -> BatchFailed:
        return BatchFailed(what, where=self._where, found=str(fault))


def _action(file: DataFile) -> AddAction:
    none: Mapping[str, Any] = {}
    return AddAction(file.name, file.size, none, file.modified_ms, True, file.statistics)
