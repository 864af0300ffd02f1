"""The commits of a table as the checker reads them: from the files of its log."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rivermouth.verify.result import Findings, Kind

_COMMIT_FILE = re.compile(r"(\d{20})\.json")
_WANTED = re.compile(r'\s*\{\s*"(commitInfo|txn)"')


@dataclass(frozen=True)
class Commit:
    """One commit: Delta's ``commitInfo``, and its ``txn`` actions as appId to version."""

    info: Mapping[str, Any]
    txns: Mapping[str, int]


class Commits(Protocol):
    """The log of one table."""

    def versions(self) -> list[int]:
        """The versions that can be read, ascending; none where there is no table."""

    def checkpointed(self) -> int:
        """The newest version that a checkpoint stands for; -1: there is none."""

    def read(self, version: int, findings: Findings) -> Commit:
        """One commit; what cannot be read of it is a finding."""

    def has(self, version: int) -> bool:
        """Whether there is such a commit by now."""


class FolderCommits:
    """The log in the folder of the table at ``path``."""

    def __init__(self, path: Path) -> None:
        self._log = path / "_delta_log"

    def versions(self) -> list[int]:
        """See ``Commits``."""
        names = (_COMMIT_FILE.fullmatch(each.name) for each in self._log.glob("*.json"))
        return sorted(int(match[1]) for match in names if match)

    def checkpointed(self) -> int:
        """See ``Commits``."""
        found = self._log.glob("*.checkpoint*")
        names = (each.name[:20] for each in found if each.suffix in (".parquet", ".json"))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def read(self, version: int, findings: Findings) -> Commit:
        """See ``Commits``."""
        info: Mapping[str, Any] = {}
        txns: dict[str, int] = {}
        try:
            with self._file(version).open(encoding="utf-8") as lines:
                actions = [json.loads(line) for line in lines if _WANTED.match(line)]
        except (OSError, ValueError) as fault:
            findings.add(Kind.FAULT, f"version {version} of the log cannot be read: {fault}")
            actions = []
        for each in actions:
            if "commitInfo" in each:
                info = each["commitInfo"]
            else:
                txns[each["txn"]["appId"]] = int(each["txn"]["version"])
        return Commit(info, txns)

    def has(self, version: int) -> bool:
        """See ``Commits``."""
        return self._file(version).exists()

    def _file(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"
