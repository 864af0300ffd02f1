"""The log of one Delta table on a store: read commit by commit, followed, and committed to.

Who follows reads the state once, from the newest checkpoint on. From then on each look asks for the
next version alone, so nothing there grows with the log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import CommitRecord, deleted_rows
from rivermouth.protocol.ways import Definition
from rivermouth.storage.store import AT_ONCE, STORE_FAULTS, Store
from rivermouth.warehouse.delta.actions import Action, AddFile, Commit, of_lines, to_lines
from rivermouth.warehouse.delta.state import (
    LOG,
    LogTail,
    TableState,
    checkpointed,
    listed,
    tail_of,
    versions_of,
)
from rivermouth.warehouse.ports import TableFacts

_RECENT = 64
"""So many of the newest commits are kept in memory."""
ENGINE = "rivermouth"
"""The ``engineInfo`` of our commits."""


class DeltaLog:
    """The log in a store. ``files``: the state knows the data files of the table, too; and with
    ``former`` those that were removed. ``projected``: it is brought up to date anyway, so a commit
    without bytes, as a power failure leaves it, says nothing there.

    What it raises: LogUnreadable where the store does not answer, LedgerBroken for what it read.
    """

    def __init__(
        self,
        store: Store,
        *,
        files: bool = False,
        former: bool = False,
        projected: bool = False,
    ) -> None:
        self.store, self._files, self._former = store, files, former
        self._projected = projected
        self.state, self._looked = self._nothing(), False
        self._recent = dict[int, list[Action]]()
        self._asked = dict[int, list[Action] | None]()  # ahead, to be taken at once

    @staticmethod
    def of_folder(folder: Path) -> DeltaLog:
        """That of the table in a folder of this machine."""
        return DeltaLog(Store.of_folder(folder))

    @staticmethod
    def as_of(store: Store, version: int) -> DeltaLog:
        """One whose state is that of a version, with its files. All names of the log are read."""
        log = DeltaLog(store, files=True)
        named = [e for e in log._names() if e[:20].isdecimal() and int(e[:20]) <= version]
        log.state = checkpointed(store, log._nothing(), listed(named))
        for each in range(log.state.version + 1, version + 1):
            log._take(each, log.actions(each))
        log._looked = True
        return log

    def _nothing(self) -> TableState:
        return TableState(files={} if self._files else None, former=[] if self._former else None)

    def follow(self) -> None:
        """Take what was committed since.

        The first time, and where the table was made anew, the state is read from the newest
        checkpoint on. Where there was no table then, one begins with version 0.
        """
        self._asked.clear()  # of one that was broken off
        if (newest := self.state.version) >= 0:
            there, _ = self.store.together(
                partial(self._has, newest), partial(self._ahead, newest + 1)
            )
            if not there:
                self.state, self._looked = self._nothing(), False
                self._recent.clear()
                self._asked.clear()
        if not self._looked:
            self.state, self._looked = self._checkpointed(), True
        while (actions := self.read(self.state.version + 1)) is not None:
            self._take(self.state.version + 1, actions)
            self._keep(self.state.version, actions)
        self._asked.clear()

    def _ahead(self, version: int) -> None:
        """Ask a bucket for a version, which is taken by the next ``read`` of it.

        That one raises what is wrong with it: perhaps nobody comes so far.
        """
        if self.store.folder is None:
            with suppress(LogUnreadable, LedgerBroken):
                self._asked[version] = self.read(version)

    def _keep(self, version: int, actions: list[Action]) -> None:
        """A commit never changes: what was followed lately need not be asked for again."""
        self._recent[version] = actions
        self._recent.pop(version - _RECENT, None)

    def _take(self, version: int, actions: list[Action]) -> None:
        try:
            self.state.take(version, actions)
        except (LookupError, TypeError, ValueError, AttributeError) as fault:
            self.state, self._looked = self._nothing(), False  # what is half taken is read again
            what, found = "a commit cannot be read", repr(fault)
            raise LedgerBroken(what, where=self._where(version), found=found) from fault

    def definition(self) -> Definition | None:
        """What it says of the table now; None where there is none."""
        self.follow()
        return self.state.definition if self.state.metadata else None

    def commit(self, commit: Commit) -> bool:
        """Make the version that follows on the state. False: another one is there already.

        Raises ``STORE_FAULTS``; nobody knows then what became of it.
        """
        base = None if self.state.version < 0 else self.state.version
        actions = commit.actions(base, int(time.time() * 1000), ENGINE)
        following, content = self.state.version + 1, to_lines(actions)
        path = path_of(following)
        if not self.store.create(path, content):
            return False
        self.state.take(following, actions)
        return True

    def versions(self) -> list[int]:
        """The versions whose commits are there, in order.

        Raises LedgerBroken where one is missing; Spark would just fail. The first ones may be, once
        a checkpoint stands for them.
        """
        return [*self._whole(listed(self._names())).versions]

    def _tail(self) -> LogTail:
        """The end of it. Raises LedgerBroken where a commit is missing there: a run would take the
        one before it for the newest.
        """
        try:
            return self._whole(tail_of(self.store))
        except STORE_FAULTS as fault:
            raise _unreadable(f"{self.store.where}/{LOG}", fault) from fault

    def _whole(self, tail: LogTail) -> LogTail:
        if tail.hole is None:
            return tail
        expected, found = tail.hole
        raise LedgerBroken(
            "a commit is missing in the log",
            where=self.store.where,
            expected=f"version {expected}",
            found=f"version {found}",
            remedy="Bring the file back from a backup of _delta_log",
        )

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order. Versions may start above 0 after clean-up."""
        for version, actions in self._in_turn(versions_of(self._names())):
            yield record_of(version, self._there(version, actions))

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, by looking for each next one."""
        for following, actions in self._in_turn(count(version + 1), ahead=2):
            if actions is None:
                return
            yield record_of(following, actions)

    def commits_backwards(self, newest: int | None = None) -> Iterator[CommitRecord]:
        """Every readable commit, the newest first: a look at the end of a long log, or back from
        the version ``newest``, which is there.

        Raises LedgerBroken where one is missing among what is read, or after the newest checkpoint.
        """
        for version, actions in self.backwards(newest):
            yield record_of(version, actions)

    def backwards(self, newest: int | None = None) -> Iterator[tuple[int, list[Action]]]:
        """The same versions, with all that they say."""
        if newest is None:
            self.follow()
            newest = self.state.version
        for version, actions in self._in_turn(range(newest, -1, -1)):
            if actions is None:  # clean-up took the others, or somebody took this one
                self.versions()
                return
            if 0 <= self.state.version - version < _RECENT:
                self._recent[version] = actions
            yield version, actions

    def _in_turn(
        self, versions: Iterable[int], ahead: int = 1
    ) -> Iterator[tuple[int, list[Action] | None]]:
        """What these versions say; None where there is none. A bucket is asked for some ``ahead``,
        and for twice as many each time.
        """
        rest = iter(versions)
        while some := [*islice(rest, ahead)]:
            self._asked.clear()  # of what was broken off
            self.store.together(*(partial(self._ahead, each) for each in some))
            for each in some:
                yield each, self.read(each)
            ahead = min(2 * ahead, AT_ONCE)

    def newest_record_ms(self, version: int) -> int | None:
        """See ``ports.LedgerLog``: from the statistics of the files that the commit added."""
        texts = [each.statistics for each in self.added(version)]
        return newest_record_ms(json.loads(text) for text in texts if text)

    def added(self, version: int) -> list[AddFile]:
        """The data files that one commit added."""
        return [AddFile.of(each["add"]) for each in self.actions(version) if "add" in each]

    def table(self, app: str) -> TableFacts:
        """See ``ports.LedgerLog``. The ``txn`` outlives clean-up."""
        definition = self.definition()
        if definition is None:
            what = "the log cannot be read"
            raise LedgerBroken(what, where=self.store.where, found="no table there")
        txn = self.state.txns.get(app, 0)
        return TableFacts(str(self.state.metadata["id"]), txn, definition.log_retention_s)

    def actions(self, version: int) -> list[Action]:
        """What a version says, which is there."""
        return self._there(version, self.read(version))

    def _there(self, version: int, actions: list[Action] | None) -> list[Action]:
        if actions is None:
            raise LedgerBroken("a commit is gone", where=self._where(version))
        return actions

    def read(self, version: int) -> list[Action] | None:
        """What a version says; None where there is none."""
        if version in self._recent:
            return self._recent[version]
        if version in self._asked:
            return self._asked.pop(version)
        where = self._where(version)
        try:
            content = self.store.read(path_of(version))
            if content is None:
                return None
            actions = of_lines(content)
        except STORE_FAULTS as fault:
            raise _unreadable(where, fault) from fault
        except ValueError as fault:
            what, found = "a commit cannot be read", repr(fault)
            raise LedgerBroken(what, where=where, found=found) from fault
        if self._projected and not actions:
            return []
        if not actions or not all(isinstance(each, dict) for each in actions):
            raise LedgerBroken("a commit is empty or torn", where=where)
        return actions

    def _checkpointed(self) -> TableState:
        tail = self._tail()
        try:
            found = checkpointed(self.store, self._nothing(), tail)
        except STORE_FAULTS as fault:
            raise _unreadable(f"{self.store.where}/{LOG}", fault) from fault
        # Those that follow are taken in their order, and none is asked for twice.
        following = [each for each in tail.versions if each > found.version]
        self.store.together(*(partial(self._ahead, each) for each in following))
        return found

    def _has(self, version: int) -> bool:
        try:
            return self.store.has(path_of(version))
        except STORE_FAULTS as fault:
            raise _unreadable(self._where(version), fault) from fault

    def _names(self) -> list[str]:
        """The names of the files in the log; none where there is no table."""
        try:
            return self.store.names(LOG)
        except STORE_FAULTS as fault:
            raise _unreadable(f"{self.store.where}/{LOG}", fault) from fault

    def _where(self, version: int) -> str:
        return f"{self.store.where}/{path_of(version)}"


def path_of(version: int) -> str:
    """Where a version is in the store."""
    return f"{LOG}/{version:020d}.json"


def newest_record_ms(statistics: Iterable[Mapping[str, Any]]) -> int | None:
    """The greatest ``_kafka.timestamp`` that Delta noted of these files, in ms since 1970."""
    greatest = [each.get("maxValues", {}).get("_kafka", {}) for each in statistics]
    texts = [each["timestamp"] for each in greatest if each.get("timestamp")]
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    return int(max(times).timestamp() * 1000) if times else None


def record_of(version: int, actions: Sequence[Action]) -> CommitRecord:
    """One commit's actions as the ledger looks at them. Raises LedgerBroken."""
    info: Mapping[str, Any] = {}
    txns: dict[str, int] = {}
    try:
        for each in actions:
            if "commitInfo" in each:
                info = each["commitInfo"]
            elif "txn" in each:
                txns[each["txn"]["appId"]] = int(each["txn"]["version"])
        return CommitRecord(
            version=version,
            timestamp_ms=int(info.get("inCommitTimestamp") or info.get("timestamp") or 0),
            operation=str(info.get("operation", "")),
            parameters=info.get("operationParameters") or {},
            txns=txns,
            user_metadata=info.get("userMetadata"),
            deleted_rows=deleted_rows(info.get("operationMetrics")),
            engine=str(info.get("engineInfo", "")),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        where = f"version {version}"
        raise LedgerBroken("a commit cannot be read", where=where, found=repr(fault)) from fault


def _unreadable(where: str, fault: Exception) -> LogUnreadable:
    return LogUnreadable("a commit cannot be read", where=where, found=repr(fault))
