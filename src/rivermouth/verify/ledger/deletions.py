"""DELETEs of others, and what entries say of the rows that they took on purpose.

In an entry ``"deletes": [{"version": 12, "rows": {"orders": {"0": [5, 2, 7, 1]}}}]`` names the rows
by the offsets of their records: the first, then in turn how many are deleted and how many not.
``"unlisted": 3`` in place of the rows: the DELETE took at most so many; nobody can tell which.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from rivermouth.verify.ledger.commits import Commit


@dataclass(frozen=True)
class Deletion:
    """What an entry says of the DELETE at ``version``: ``(start, until)`` by partition, in order;
    or, as ``unlisted``, how many rows it took at most.
    """

    version: int
    rows: Mapping[tuple[str, int], Sequence[tuple[int, int]]] = field(default_factory=dict)
    unlisted: int = 0

    @property
    def count(self) -> int:
        """How many rows it took, at most where they are not listed."""
        runs = (run for each in self.rows.values() for run in each)
        return sum(until - start for start, until in runs) + self.unlisted


def parse_deletion(facts: Mapping[str, Any]) -> Deletion:
    """From its JSON; raises KeyError, TypeError, ValueError or AttributeError."""
    rows = {
        (topic, int(number)): tuple(_runs(numbers))
        for topic, partitions in facts.get("rows", {}).items()
        for number, numbers in partitions.items()
    }
    return Deletion(int(facts["version"]), rows, int(facts.get("unlisted", 0)))


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    at = 0
    for skipped, taken in zip(numbers[::2], numbers[1::2], strict=True):
        if skipped < 0 or taken < 1:
            raise ValueError(f"no run of offsets: {skipped}, {taken}")
        yield at + skipped, at + skipped + taken
        at += skipped + taken


class StandingDeletes:
    """Takes the commits of a table in order; knows which DELETEs of others stand at the newest."""

    def __init__(self) -> None:
        self._newest: _Node | None = None
        self._at_version: list[tuple[int, _Node | None]] = []

    def take(self, version: int, commit: Commit, *, empties: bool) -> None:
        """Add the next commit; ``empties``: it removes all rows, where it is not ours."""
        if any(app.startswith("rivermouth/") for app in commit.txns):
            return
        operation = str(commit.info.get("operation")).upper()
        if operation == "RESTORE":
            target = str((commit.info.get("operationParameters") or {}).get("version"))
            reached = target.isdigit() and bisect_right(
                self._at_version, int(target), key=itemgetter(0)
            )
            self._newest = self._at_version[reached - 1][1] if reached else None
        elif empties:
            self._newest = None
        elif operation == "DELETE":
            rows = _told(commit.info.get("operationMetrics"))
            self._newest = _Node(version, rows, self._newest)
        else:
            return
        self._at_version.append((version, self._newest))

    def rows(self) -> dict[int, int | None]:
        """Those that stand, by version; each with its number of rows, where its commit tells it."""
        found: dict[int, int | None] = {}
        node = self._newest
        while node is not None:
            found[node.version] = node.rows
            node = node.before
        return found


@dataclass(frozen=True)
class _Node:
    """A DELETE that stands, and those before it: a list that branches at a RESTORE."""

    version: int
    rows: int | None
    before: _Node | None = field(repr=False)


def _told(metrics: Mapping[str, Any] | None) -> int | None:
    """How many rows a DELETE took: Spark's name for it, and deltalake's."""
    names = ("numDeletedRows", "num_deleted_rows")
    found = (str((metrics or {}).get(name)) for name in names)
    return next((int(each) for each in found if each.isdigit()), None)
