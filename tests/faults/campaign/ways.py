"""Which way a table's commits are made, what changes it, and which way they were made.

Rows land as files, unless the configuration says ``spark``, or the table has a property that who
writes files does not understand (``rivermouth.protocol.ways``). Both change in a campaign.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.faults.campaign.looks import Look, new_file, once
from tests.faults.checker.log import Log
from tests.faults.model.trace import ASKING, PROPERTY

UNDERSTOOD, ASKS = "interval 7 days", ASKING
"""Which spelling of the same is understood; with the other one a table lands through Spark."""
AMID = "way changed in a run"


def alter(table: Path, *, asks: bool) -> bool:
    """Let a table ask for Spark's writer, or no longer; whether that is a change.

    A driver may commit at the same moment: then nothing is changed.
    """
    if not DeltaTable.is_deltatable(str(table)):
        return False
    delta, value = DeltaTable(str(table)), ASKS if asks else UNDERSTOOD
    if delta.metadata().configuration.get(PROPERTY, UNDERSTOOD) == value:
        return False
    with suppress(DeltaError):
        delta.alter.set_table_properties({PROPERTY: value})
        return True
    return False


def altering(tables: Iterable[Path], look: Look = lambda: False) -> Look:
    """A look at a run that also alters tables, each to the other way: when a commit of that run
    appears in its log.
    """
    other_ways = [
        once(new_file("_delta_log/*.json", each), partial(_alter, each)) for each in tables
    ]
    return lambda: ([other_way() for other_way in other_ways], look())[1]


def _alter(table: Path) -> bool:
    return any(alter(table, asks=asks) for asks in (True, False))


class CommitWays:
    """The ways of the commits in some tables, by pipeline; ``trace`` says in which run they came.

    Ask before log clean-up takes commits.
    """

    def __init__(self, trace: Path, tables: Mapping[str, Path]) -> None:
        self._trace, self._tables = trace, tables
        self._by: dict[str, str] = {}
        self._last: dict[tuple[str, str], str] = {}
        self._read = 0

    def count(self) -> Counter[str]:
        """How many commits came since this was last asked, by way, and how often it changed."""
        new = {
            commit: way
            for table in self._tables.values()
            for commit, way in _ways(table)
            if commit not in self._by
        }
        self._by |= new
        return Counter([*new.values(), *self._changes()])

    def _changes(self) -> Iterator[str]:
        lines = self._trace.read_text("utf-8").splitlines() if self._trace.exists() else []
        new, self._read = lines[self._read :], len(lines)
        for step in map(json.loads, new):
            run = step["process"], step["pipeline"]
            if step["step"] == "open":
                self._last.pop(run, None)
            elif step["step"] == "write" and (way := self._by.get(step["commit"])):
                if self._last.setdefault(run, way) != way:
                    yield AMID
                self._last[run] = way


def _ways(table: Path) -> Iterator[tuple[str, str]]:
    """Each entry's commit id, and whose commit it is."""
    for each in Log(table).update():
        if each.txns and each.metadata:
            yield json.loads(each.metadata)["commit"], "files" if each.as_files else "spark"
