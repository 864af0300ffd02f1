"""The checker's reading of a Delta log: commits, and the data files of a version.

Reads the JSON of each commit, and a classic Parquet checkpoint where log clean-up has taken
the first of them. Column mapping and partitions are not read: ``problems`` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.checker.data_files import DataFile

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
Action = Mapping[str, Any]


class Stale(Exception):
    """The log is not the one that was read before."""


@dataclass(frozen=True)
class Commit:
    """One commit. ``emptied``: it took every row and brought none that we know of.

    ``engine`` is what made it, as it says.
    """

    version: int
    operation: str
    parameters: Mapping[str, Any]
    metadata: str | None
    txns: Mapping[str, int]
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    changes_data: bool
    emptied: bool
    engine: str

    @property
    def as_files(self) -> bool:
        """Whether a driver committed files that its tasks wrote; all else of ours is Spark's."""
        return bool(self.txns) and self.engine.startswith("rivermouth")


class Log:
    """The log of the table at ``path``; ``update`` reads what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = -1
        self.first = 0
        self.commits: list[Commit] = []
        self.problems: list[str] = []
        self.txns: dict[str, int] = {}
        self._base: tuple[int, tuple[DataFile, ...]] = (-1, ())
        self._active: dict[DataFile, None] = {}
        self._stamp = (0, 0)

    def update(self) -> list[Commit]:
        """Read the commits that came since. Raises Stale where the log was replaced."""
        folder = self.path / "_delta_log"
        names = (match for each in folder.glob("*.json") if (match := _COMMIT.fullmatch(each.name)))
        versions = sorted(int(match[1]) for match in names)
        if self.version >= 0 and (
            not versions or versions[-1] < self.version or self._stamp != self._stamped()
        ):
            raise Stale(str(self.path))
        if self.version < 0 and versions and versions[0] > 0:
            self._start_at(folder, versions[0])
        new = [each for each in versions if each > self.version]
        found = [self._read(each) for each in new]
        self.commits += found
        if new:
            self._stamp = self._stamped()
        return found

    @property
    def files(self) -> list[DataFile]:
        """The data files of the newest version."""
        return [*self._active]

    def files_at(self, versions: Collection[int]) -> dict[int, list[DataFile]]:
        """The data files of each version that the log can still tell."""
        base, files = self._base
        active, found = dict.fromkeys(files), {base: [*files]}
        for commit in self.commits:
            if commit.version > base:
                _apply(active, commit.added, commit.removed)
                if commit.version in versions:
                    found[commit.version] = [*active]
        return {version: each for version, each in found.items() if version in versions}

    def missing(self) -> list[str]:
        """Data files of the newest version that are not there, or lack their deletion vector."""
        return [each.path for each in self._active if not each.is_there(self.path)]

    @contextmanager
    def reading(self, file: DataFile) -> Iterator[None]:
        """While a data file is read; one that cannot be read is noted and passed over."""
        try:
            yield
        except FileNotFoundError:
            return  # ``missing`` says so
        except (OSError, pa.ArrowException) as fault:
            self.problems.append(f"{file.path} cannot be read: {fault}")

    def _stamped(self) -> tuple[int, int]:
        file = self.path / "_delta_log" / f"{self.version:020d}.json"
        return (file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else (0, 0)

    def _start_at(self, folder: Path, first: int) -> None:
        """Begin with a checkpoint: commits before ``first`` are gone."""
        self.first, self.version = first, first - 1
        parts: dict[int, list[Path]] = {}
        for file in sorted(folder.glob("*.checkpoint*.parquet")):
            match = _CHECKPOINT.fullmatch(file.name)
            if match and int(match[1]) >= first - 1:
                parts.setdefault(int(match[1]), []).append(file)
        if not parts:
            self.problems.append(f"the log begins at version {first}, without a checkpoint")
            return
        version = min(parts)
        active: dict[DataFile, None] = {}
        for file in parts[version]:
            for action in pq.read_table(file).to_pylist():
                present = {name: each for name, each in action.items() if each}
                self._look_at(version, present)
                if "add" in present:
                    active[DataFile.of(present["add"])] = None
        self._base, self._active = (version, tuple(active)), active

    def _read(self, version: int) -> Commit:
        if version != self.version + 1:
            self.problems.append(f"versions {self.version + 1} to {version - 1} are missing")
        self.version = version
        file = self.path / "_delta_log" / f"{version:020d}.json"
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            actions: list[Action] = [json.loads(line) for line in lines if line]
        except (OSError, ValueError) as fault:
            self.problems.append(f"version {version} cannot be read: {fault}")
            actions = []
        for each in actions:
            self._look_at(version, each)
        commit = _commit(version, actions, self._active)
        if version > self._base[0]:
            _apply(self._active, commit.added, commit.removed)
        return commit

    def _look_at(self, version: int, action: Action) -> None:
        """Note ``txn`` versions, and what this reader cannot read."""
        if "txn" in action:
            self.txns[action["txn"]["appId"]] = int(action["txn"]["version"])
        strange = []
        metadata = action.get("metaData") or {}
        settings = dict(metadata.get("configuration") or {})
        if metadata.get("partitionColumns"):
            strange.append("partitions")
        if settings.get("delta.columnMapping.mode", "none") != "none":
            strange.append("column mapping")
        self.problems += [f"version {version} has {each}, not read here" for each in strange]


def _commit(version: int, actions: Iterable[Action], active: Collection[DataFile]) -> Commit:
    info: Action = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
    operation = str(info.get("operation", ""))
    added = [each["add"] for each in actions if "add" in each]
    removed = [each["remove"] for each in actions if "remove" in each]
    changes = any(each.get("dataChange", True) for each in [*added, *removed])
    taken = tuple(map(DataFile.of, removed))
    everything = bool(taken) and changes and set(active) <= {*taken}
    return Commit(
        version=version,
        operation=operation,
        parameters=info.get("operationParameters") or {},
        metadata=info.get("userMetadata"),
        txns={
            each["txn"]["appId"]: int(each["txn"]["version"]) for each in actions if "txn" in each
        },
        added=tuple(map(DataFile.of, added)),
        removed=taken,
        changes_data=changes,
        emptied=_empties(operation) or (everything and (not added or operation == "WRITE")),
        engine=str(info.get("engineInfo", "")),
    )


def _empties(operation: str) -> bool:
    return operation in ("TRUNCATE", "CLONE") or "REPLACE TABLE" in operation


def _apply(
    active: dict[DataFile, None], added: Iterable[DataFile], removed: Iterable[DataFile]
) -> None:
    for each in removed:
        active.pop(each, None)
    active.update(dict.fromkeys(added))
