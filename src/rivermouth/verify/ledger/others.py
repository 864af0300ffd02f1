"""Commits that no pipeline made, and which of them may have changed rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rivermouth.verify.ledger.chain import empties
from rivermouth.verify.ledger.commits import Commit

_HARMLESS = (
    "ADD COLUMN",
    "ADD CONSTRAINT",
    "ADD FEATURE",
    "ANALYZE",
    "CHANGE COLUMN",
    "CLUSTER BY",
    "COMPUTE STATS",
    "DROP CONSTRAINT",
    "OPTIMIZE",
    "RESTORE",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "UPGRADE PROTOCOL",
    "VACUUM",
)
"""Operations that change no row; any other one may. A RESTORE is followed by the chain."""
_OF_SOFT_DELETES = re.compile(r"\W*_tombstone(#\d+)?\W*")
"""The predicate of the DELETE by which a pipeline removes the rows that it marked."""


@dataclass(frozen=True)
class Foreign:
    """A commit of others that may have changed rows; ``empties``: it removed all of them."""

    version: int
    operation: str
    empties: bool

    @staticmethod
    def of(version: int, commit: Commit) -> Foreign | None:
        """What a commit is; None for one of a pipeline, and for one that changes no row."""
        if any(app.startswith("rivermouth/") for app in commit.txns):
            return None
        operation = str(commit.info.get("operation"))
        parameters = commit.info.get("operationParameters") or {}
        ours = _OF_SOFT_DELETES.fullmatch(str(parameters.get("predicate")))
        if operation.upper().startswith(_HARMLESS) or (operation == "DELETE" and ours):
            return None
        return Foreign(version, operation, empties(commit))
