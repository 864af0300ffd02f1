"""Whether what the drivers of a world traced is a path of the model (see ``tests.faults.model``).

The model's log and offsets table only grow. So where something else takes from them, what was
traced until then is checked first, and what comes after it as a trace of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.checker.at_length import at_length
from tests.faults.checker.log import Commit, Log
from tests.faults.model.configurations import FILES
from tests.faults.model.conformance import check_trace
from tests.faults.model.effects import ROWS, Effect
from tests.faults.model.guards import Guards

CUTS = ("offsets table gone", "offsets table stale", "log clean-up")
"""Faults that no path leads through."""


class Paths:
    """The trace in ``file``, and the logs of the ``tables`` by pipeline; ``effect`` of those that
    send. ``guards``: those of an object store, where no lock keeps two drivers apart.
    """

    def __init__(
        self,
        file: Path,
        tables: Mapping[str, Path],
        effect: Effect = ROWS,
        guards: Guards = FILES,
    ) -> None:
        self._guards = guards
        self._file = file
        self._tables = tables
        self._effect = effect
        self._checked = 0

    def check(self) -> list[str]:
        """What in the trace since the last call is no path; nobody may be running."""
        if not self._file.exists():
            return []
        lines = self._file.read_text(encoding="utf-8").splitlines()
        new, before = lines[self._checked :], self._checked
        self._checked = len(lines)
        return [
            f"{name}, trace after line {before}: {refusal}"
            for name, table in self._tables.items()
            for refusal in check_trace(new, _commits(table), name, self._guards, self._effect)
        ]


def _commits(table: Path) -> Sequence[Mapping[str, Any]]:
    return [_as_dict(each) for each in Log(table).update()]


def _as_dict(commit: Commit) -> Mapping[str, Any]:
    text = commit.metadata if commit.txns else None
    entry = at_length(json.loads(text)) if text else None
    names = ("version", "operation", "parameters", "txns", "as_files")
    return {**{name: getattr(commit, name) for name in names}, "entry": entry}
