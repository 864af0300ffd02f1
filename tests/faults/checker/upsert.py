"""An upsert table: at every entry, its rows are the fold of the records up to that entry."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pyarrow as pa

from tests.faults.checker.append import is_dark
from tests.faults.checker.data_files import DataFile
from tests.faults.checker.evidence import Place, Watched, shown
from tests.faults.checker.fold import Fold, Ref
from tests.faults.checker.ledger import Node
from tests.faults.checker.log import Log
from tests.faults.checker.records import Records, meanings
from tests.faults.checker.rows import FileSums, Rows, read_rows
from tests.faults.checker.verdict import Fault, Finding, some

FEW = 20
SAMPLE = 10


class Snapshots:
    """Compares snapshots of an upsert table with the fold, each once."""

    def __init__(self, log: Log, watched: Watched) -> None:
        self.compared = 0
        self.unchecked = 0
        self.findings: list[Finding] = []
        self._newest = -1
        self._log = log
        self._watched = watched
        self._sums = FileSums(watched)

    def compare(
        self,
        new: Sequence[Node],
        stands: Node | None,
        fold: Fold,
        records: Mapping[Place, Records],
        seed: int,
    ) -> None:
        """Compare the snapshots at ``new`` entries (see ``chosen``), and the newest one."""
        newest = self._log.version
        wanted = {each.entry.version for each in chosen(new, seed)} - {newest}
        files = self._log.files_at({*wanted, newest})
        for node in new:
            fold.move_to(node, records)
            if node.entry.version in wanted & files.keys():
                self._at(node, files[node.entry.version], node.entry.version, fold, records)
        fold.move_to(stands, records)
        if newest in files and newest != self._newest:
            self._at(stands, files[newest], newest, fold, records)
        self._newest = newest

    def _at(
        self,
        node: Node | None,
        files: Sequence[DataFile],
        version: int,
        fold: Fold,
        records: Mapping[Place, Records],
    ) -> None:
        there = [each for each in files if each.is_there(self._log.path)]
        if len(there) < len(files) and version < self._log.version:
            self.unchecked += 1  # VACUUM took what only older versions need
            return
        self.compared += 1
        try:
            if self._sums.of(there) == (len(fold.rows), fold.total):
                return
            found = Differences(node, fold, records)
            found.read(there, self._watched)
        except (OSError, pa.ArrowException) as fault:
            self.findings.append(Finding(Fault.UNREADABLE, self._watched.name, str(fault)))
            return
        self.unchecked += found.unchecked
        where = f"{self._watched.name} version {version}"
        self.findings += [Finding(fault, where, some(rows)) for fault, rows in found.rows.items()]


def chosen(nodes: Sequence[Node], seed: int) -> list[Node]:
    """All entries where they are few, else the last and some others."""
    if len(nodes) <= FEW:
        return [*nodes]
    return [*random.Random(seed).sample([*nodes[:-1]], SAMPLE), nodes[-1]]


class Differences:
    """Goes through the rows of a snapshot one by one and names what is wrong with each."""

    def __init__(self, node: Node | None, fold: Fold, records: Mapping[Place, Records]) -> None:
        self.rows: dict[Fault, list[str]] = {}
        self.unchecked = 0
        self._reached = node.reached if node is not None else {}
        self._fold = fold
        self._records = records

    def read(self, files: Sequence[DataFile], watched: Watched) -> None:
        """Judge all rows, then the keys that have none."""
        seen: set[int] = set()
        for rows in read_rows(files, watched):
            columns = (rows.offsets.tolist(), rows.digests.tolist(), rows.keys.tolist())
            for offset, digest, key in zip(*columns, strict=True):
                fault = Fault.DUPLICATE if key in seen else self._judge(rows, offset, digest, key)
                if fault is not None:
                    self._add(fault, key, f"{shown(rows.place)}@{offset}")
                seen.add(key)
        for key, (place, index) in self._fold.rows.items():
            if key not in seen:
                self._add(Fault.LOST, key, f"{shown(place)}@{self._records[place].offsets[index]}")

    def _judge(self, rows: Rows, offset: int, digest: int, key: int) -> Fault | None:
        due, meant = self._fold.rows.get(key), meanings(self._records, rows.place)
        if not meant:
            return Fault.PHANTOM
        refs = [(each.place, each.at(offset)) for each in meant]
        seen = [ref for ref in refs if ref[1] >= 0]
        same = [ref for ref in seen if int(self._records[ref[0]].rows[ref[1]]) == digest]
        if not same:
            unseen = [each for each, ref in zip(meant, refs, strict=True) if ref[1] < 0]
            if seen and not any(each.is_dark(offset, offset + 1) for each in unseen):
                return Fault.INCONSISTENT
            return self._unseen(unseen, offset)
        if due in same:
            return None
        found: Ref = same[0]
        if offset >= self._reached.get(found[0], 0):
            return Fault.PHANTOM
        if due is None:
            return Fault.FOLD
        older = self._fold.rank(found, self._records) < self._fold.rank(due, self._records)
        return Fault.ORDER if older else Fault.FOLD

    def _unseen(self, meant: Sequence[Records], offset: int) -> Fault | None:
        """A row of no visible record; None where its record may have been deleted since."""
        if any(is_dark(each, offset) for each in meant):
            self.unchecked += 1
            return None
        if any(offset in each.aborted for each in meant):
            return Fault.ABORTED_READ
        return Fault.PHANTOM

    def _add(self, fault: Fault, key: int, row: str) -> None:
        decides = fault in (Fault.LOST, Fault.FOLD, Fault.ORDER)
        if decides and self._fold.dark and key not in self._fold.certain:
            self.unchecked += 1
        else:
            self.rows.setdefault(fault, []).append(row)
