"""Quarantined records: those count whose commit stands, and they must be the bad ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.checker.data_files import DataFile
from tests.faults.checker.decode import Kind
from tests.faults.checker.digest import Integers, of_bytes
from tests.faults.checker.entry import Entry
from tests.faults.checker.evidence import Place, real, shown
from tests.faults.checker.log import Log
from tests.faults.checker.records import Records
from tests.faults.checker.verdict import Fault, Finding, some

_COLUMNS = ["commit", "topic", "partition", "offset", "key", "value"]
Row = tuple[str, Place, int, int]
"""Commit id, place, offset, digest of key and value."""


@dataclass(frozen=True)
class Held:
    """The quarantined records whose commits stand, as far as they are of visible records.

    ``counts`` runs beside the records of a partition; ``by_commit`` counts all rows.
    """

    counts: Mapping[Place, Integers]
    by_commit: Mapping[tuple[str, Place], int]
    findings: tuple[Finding, ...] = ()
    unchecked: int = 0


class Quarantine:
    """The quarantine table at ``path``; ``update`` reads what is new."""

    def __init__(self, path: Path) -> None:
        self.log = Log(path)
        self._rows: list[Row] = []
        self._seen: set[DataFile] = set()

    def update(self) -> None:
        """Read the rows that came since; all of them where rows were taken away."""
        self.log.update()
        files = set(self.log.files)
        if not self._seen <= files:
            self._rows, self._seen = [], set()
        for file in files - self._seen:
            with self.log.reading(file):
                self._rows += _read(file.rows(self.log.path, _COLUMNS))
        self._seen = files

    def held(self, entries: Iterable[Entry], records: Mapping[Place, Records]) -> Held:
        """What lies in quarantine under entries that stand."""
        spans = {each.commit: {real(span.place): span for span in each.spans} for each in entries}
        counts = {place: np.zeros(len(each.offsets), np.int64) for place, each in records.items()}
        by_commit: Counter[tuple[str, Place]] = Counter()
        strange = _Strange()
        for commit, place, offset, raw in self._rows:
            if commit not in spans:
                continue
            span = spans[commit].get(place)
            place = span.place if span is not None else place
            here = records.get(place)
            by_commit[commit, place] += 1
            if span is None or not span.start <= offset < span.until:
                strange.add(Fault.QUARANTINE, place, offset)
            elif here is None or here.is_dark(offset, offset + 1):
                strange.unchecked += 1
            else:
                self._judge(here, offset, raw, counts[place], strange)
        return Held(counts, by_commit, tuple(strange.findings()), strange.unchecked)

    def _judge(
        self, here: Records, offset: int, raw: int, counts: Integers, strange: _Strange
    ) -> None:
        [index] = here.find(np.array([offset], np.int64)).tolist()
        if index < 0:
            aborted = offset in here.aborted
            strange.add(Fault.ABORTED_READ if aborted else Fault.PHANTOM, here.place, offset)
            return
        counts[index] += 1
        if int(here.raw[index]) != raw:
            strange.add(Fault.INCONSISTENT, here.place, offset)


def misplaced(records: Records, held: Integers, covered: slice) -> Iterator[Finding]:
    """Bad records that are not in quarantine once, and good ones that are there.

    ``held`` runs beside the records; only the ``covered`` ones should have left anything.
    """
    kinds, counts, offsets = records.kinds[covered], held[covered], records.offsets[covered]
    wrong = {
        "bad records missing in quarantine": (kinds == Kind.BAD) & (counts == 0),
        "records twice in quarantine": counts > 1,
        "good records in quarantine": (kinds != Kind.BAD) & (counts > 0),
    }
    for what, mask in wrong.items():
        if mask.any():
            found = some(offsets[mask].tolist())
            yield Finding(Fault.QUARANTINE, str(records), f"{what}: {found}")


@dataclass
class _Strange:
    """Quarantined rows that should not be, by fault and place."""

    offsets: dict[tuple[Fault, Place], list[int]] = field(default_factory=dict)
    unchecked: int = 0

    def add(self, fault: Fault, place: Place, offset: int) -> None:
        self.offsets.setdefault((fault, place), []).append(offset)

    def findings(self) -> Iterator[Finding]:
        for (fault, place), offsets in self.offsets.items():
            what = f"quarantined, but not a bad record of its commit: {some(offsets)}"
            yield Finding(fault, shown(place), what)


def _read(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    return [
        (
            each["commit"],
            (each["topic"], each["partition"]),
            each["offset"],
            of_bytes(each["key"], each["value"]),
        )
        for each in rows
    ]
