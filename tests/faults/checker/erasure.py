"""Rows that others deleted on purpose: those that entries name, and those that really went.

Rows are named by offset. Which record that was, and whether it went just then, is seen in the data
files that the DELETE took away and brought, as long as VACUUM has left them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tests.faults.checker.data_files import DataFile
from tests.faults.checker.digest import Integers
from tests.faults.checker.evidence import Place, Watched, shown
from tests.faults.checker.ledger import Node, standing
from tests.faults.checker.log import Commit, Log
from tests.faults.checker.records import Records, meanings
from tests.faults.checker.rows import read_rows
from tests.faults.checker.verdict import Fault, Finding, some

Row = tuple[Place, int, int]
"""A row: its partition, its offset, its digest."""


class Erasures:
    """What the DELETEs that entries name took; ``update`` looks at those that are new.

    ``blind`` are those of which nobody can tell all rows.
    """

    def __init__(self, log: Log, watched: Watched) -> None:
        self.findings: list[Finding] = []
        self.blind: dict[Node, int] = {}
        self._log = log
        self._watched = watched
        self._taken: dict[Node, Mapping[Place, Integers]] = {}

    def update(self, new: Iterable[Node], records: Mapping[Place, Records]) -> None:
        """Find the records of the rows that were deleted."""
        commits = {each.version: each for each in self._log.commits}
        for node in new:
            if node.erased:
                went = self._went(commits.get(node.entry.version))
                found = self._named(node, records) if went is None else [*went]
                self._take(node, found, went, records)

    def taken(self, node: Node) -> Mapping[Place, Integers]:
        """The indices of the records whose rows went, by partition."""
        return self._taken.get(node, {})

    def of(self, node: Node | None, records: Records) -> Integers:
        """How many rows of each record were deleted by what stands at ``node``."""
        counts = np.zeros(len(records.offsets), np.int64)
        for each in standing(node):
            if each.erased:
                counts[self.taken(each).get(records.place, [])] += 1
        return counts

    def left(self, node: Node | None) -> int:
        """How many rows, at most, were deleted that nobody can tell any more."""
        return sum(self.blind.get(each, 0) for each in standing(node))

    def _went(self, commit: Commit | None) -> Counter[Row] | None:
        """The rows that a commit took away for good; None where its files are gone."""
        if commit is None:
            return None
        try:
            return self._rows(commit.removed) - self._rows(commit.added)
        except (OSError, pa.ArrowException):
            return None

    def _rows(self, files: Sequence[DataFile]) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for rows in read_rows(files, self._watched):
            both = zip(rows.offsets.tolist(), rows.digests.tolist(), strict=True)
            found.update((rows.place, offset, digest) for offset, digest in both)
        return found

    def _named(self, node: Node, records: Mapping[Place, Records]) -> list[Row]:
        """The rows as an entry names them, where nothing else tells: of the newest meaning."""
        found: list[Row] = []
        for place, offset in _offsets(node):
            here = next((each for each in meanings(records, place) if each.at(offset) >= 0), None)
            if here is not None:
                found.append((place, offset, int(here.rows[here.at(offset)])))
        return found

    def _take(
        self,
        node: Node,
        found: Sequence[Row],
        went: Counter[Row] | None,
        records: Mapping[Place, Records],
    ) -> None:
        unlisted = sum(each.unlisted for each in node.erased)
        named = _offsets(node)
        beyond = [each for each in found if each[:2] not in named]
        if unlisted and went is not None and len(beyond) <= unlisted:
            named |= {each[:2] for each in beyond}
            unlisted = 0
        if unlisted:
            self.blind[node] = unlisted
        taken: dict[Place, list[int]] = {}
        for place, offset, digest in found:
            for each in meanings(records, place) if (place, offset) in named else ():
                index = each.at(offset)
                if index >= 0 and int(each.rows[index]) == digest:
                    taken.setdefault(each.place, []).append(index)
                    break
        self._taken[node] = {place: np.array(each, np.int64) for place, each in taken.items()}
        strange = named - {each[:2] for each in found} if went is not None else set()
        self._find(node, strange)

    def _find(self, node: Node, strange: set[tuple[Place, int]]) -> None:
        where = f"{self._watched.name} version {node.entry.version}"
        if strange:
            rows = [f"{shown(place)}@{offset}" for place, offset in sorted(strange)]
            what = f"named as deleted, but it took no such row: {some(rows)}"
            self.findings.append(Finding(Fault.ERASURE, where, what))


def _offsets(node: Node) -> set[tuple[Place, int]]:
    return {
        (span.place, offset)
        for each in node.erased
        for span in each.spans
        for offset in range(span.start, span.until)
    }
