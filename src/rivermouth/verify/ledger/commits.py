"""The commits of one table, as every kind of warehouse tells them to the checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rivermouth.verify.result import Findings


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
        """The newest version that has a checkpoint; -1: there is none."""

    def read(self, version: int, findings: Findings) -> Commit:
        """One commit. Adds a finding for what cannot be read of it."""

    def has(self, version: int) -> bool:
        """Whether this commit exists now. It may be newer than the last of ``versions``."""
