"""The edge to a Delta log that lies at a path: read as plain files, without Spark.

Reading back after a commit looks at one new JSON file, and a start at those of the log's end. The
snapshot's own facts (table id, ``txn`` versions) come through deltalake, which knows checkpoints.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import CommitRecord, deleted_rows
from rivermouth.warehouse.folder.newest_record import newest_record_ms
from rivermouth.warehouse.ports import TableFacts

_SECONDS = {"second": 1.0, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SECONDS |= {"microsecond": 1e-6, "millisecond": 1e-3}
_PART = rf"(\d+)\s*({'|'.join(_SECONDS)})s?\b"
_INTERVAL = re.compile(rf"\s*(?:interval\b)?\s*(?:{_PART}\s*)+")
_DAY_S = 86400.0
_CHECKPOINT_FILE = re.compile(r"^(\d{20})\.checkpoint.*\.(parquet|json)$")
_COMMIT_FILE = re.compile(r"^(\d{20})\.json$")


def interval_s(text: str) -> float | None:
    """A duration of Delta's, like ``interval 30 days``, in seconds; None: not understood."""
    if not _INTERVAL.fullmatch(text.lower()):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text.lower()))


def duration_s(text: str | None) -> float:
    """How long log clean-up leaves commits, by that setting of a table, in seconds.

    Delta's 30 days where there is none; one day where it is not understood: better an entry is
    written again too soon.
    """
    if text is None:
        return 30 * _DAY_S
    understood = interval_s(text)
    return _DAY_S if understood is None else understood


class FolderLog:
    """The log of the Delta table at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path / "_delta_log"

    def exists(self) -> bool:
        """Whether there is a table: at least one commit."""
        return bool(_versions(self._names(), _COMMIT_FILE))

    def check_without_hole(self) -> None:
        """Raise LedgerBroken where a commit is missing; Spark would just fail.

        The first ones may be, once a checkpoint stands for them.
        """
        self._without_hole()

    def _without_hole(self) -> list[int]:
        """The versions whose commits are there, see ``check_without_hole``."""
        names = self._names()
        versions = _versions(names, _COMMIT_FILE)
        checkpoints = (each for each in names if ".checkpoint" in each)
        checkpointed = max(_versions(checkpoints, _CHECKPOINT_FILE), default=-1)
        stands = [checkpointed] if versions and versions[0] > checkpointed + 1 else []
        for before, version in pairwise((*stands, *versions)):
            if version != before + 1:
                raise LedgerBroken(
                    "a commit is missing in the log",
                    where=str(self.path),
                    expected=f"version {before + 1}",
                    found=f"version {version}",
                    remedy="Bring the file back from a backup of _delta_log",
                )
        return versions

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order. Versions may start above 0 after clean-up."""
        for version in _versions(self._names(), _COMMIT_FILE):
            yield record_of(version, self._actions(version))

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, by looking for each next file."""
        following = version + 1
        while (actions := self._read(following)) is not None:
            yield record_of(following, actions)
            following += 1

    def commits_backwards(self) -> Iterator[CommitRecord]:
        """Every readable commit, the newest first: a look at the end of a long log.

        Of what is not read, at least no file may be missing: raises LedgerBroken.
        """
        for version in reversed(self._without_hole()):
            yield record_of(version, self._actions(version))

    def newest_record_ms(self, version: int) -> int | None:
        """See ``ports.LedgerLog``: from the statistics of the files that the commit added."""
        actions = self._actions(version)
        texts = [each["add"].get("stats") for each in actions if "add" in each]
        return newest_record_ms(json.loads(text) for text in texts if text)

    def added_files(self, version: int) -> list[Path]:
        """The data files that one commit added."""
        actions = self._actions(version)
        return [self.path / unquote(each["add"]["path"]) for each in actions if "add" in each]

    def files(self) -> list[Path]:
        """The data files of the newest snapshot."""
        return [Path(unquote(each)) for each in DeltaTable(str(self.path)).file_uris()]

    def table(self, app: str) -> TableFacts:
        """See ``ports.LedgerLog``. The ``txn`` outlives clean-up."""
        table = self._table()
        metadata = table.metadata()
        retention = metadata.configuration.get("delta.logRetentionDuration")
        txn = table.transaction_version(app) or 0
        return TableFacts(str(metadata.id), txn, duration_s(retention))

    def _table(self) -> DeltaTable:
        try:
            return DeltaTable(str(self.path))
        except OSError as fault:
            raise _unreadable(self._log, fault) from fault
        except DeltaError as fault:  # a checkpoint that is damaged, for one
            raise LedgerBroken(
                "the log cannot be read", where=str(self.path), found=str(fault)
            ) from fault

    def _names(self) -> list[str]:
        """The names of the files in the log; none where there is no table."""
        try:
            return os.listdir(self._log)  # iterdir() takes twice as long over 100,000 commits
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as fault:
            raise _unreadable(self._log, fault) from fault

    def _actions(self, version: int) -> list[dict[str, Any]]:
        actions = self._read(version)
        if actions is None:
            raise LedgerBroken("a commit is gone", where=str(self._file(version)))
        return actions

    def _file(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"

    def _read(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of a commit; None where there is no such file."""
        file = self._file(version)
        try:
            # Not splitlines(): statistics hold text of the users, U+2028 for one.
            lines = file.read_text("utf-8").split("\n")
            actions = [json.loads(line) for line in lines if line.strip()]
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise _unreadable(file, fault) from fault
        except ValueError as fault:
            what, found = "a commit cannot be read", repr(fault)
            raise LedgerBroken(what, where=str(file), found=found) from fault
        if not actions or not all(isinstance(each, dict) for each in actions):
            raise LedgerBroken("a commit is empty or torn", where=str(file))
        return actions


def _versions(names: Iterable[str], pattern: re.Pattern[str]) -> list[int]:
    """The versions in the names of files of one kind, in order."""
    return sorted(int(match[1]) for name in names if (match := pattern.match(name)))


def _unreadable(file: Path, fault: Exception) -> LogUnreadable:
    return LogUnreadable("a commit cannot be read", where=str(file), found=repr(fault))


def record_of(version: int, actions: Sequence[Mapping[str, Any]]) -> CommitRecord:
    """One commit's actions as the ledger looks at them. Raises LedgerBroken."""
    try:
        return _record(version, actions)
    except (LookupError, TypeError, ValueError, AttributeError) as fault:
        where = f"version {version}"
        raise LedgerBroken("a commit cannot be read", where=where, found=repr(fault)) from fault


def _record(version: int, actions: Sequence[Mapping[str, Any]]) -> CommitRecord:
    info: Mapping[str, Any] = {}
    txns: dict[str, int] = {}
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
    )
