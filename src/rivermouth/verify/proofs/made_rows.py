"""Rows that a pipeline's own code made of the records: what can be proved without knowing it.

Each row is proved by its coordinates and by the timestamp of its record; its values are not
compared. A record that has no row may have been left out by the code, but no more of them than the
commit says: it tells how many rows it wrote, and its entry how many records took effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rivermouth.verify.formats.reader import Reader
from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import LedgerEntry, Partition, shown
from rivermouth.verify.proofs.compare import NotCompared
from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.result import Findings, Kind, Unchecked, count
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.sql_types import schema_of

_SHOWN = 3


class MadeReaders:
    """Readers as ``plain`` gives them, but for entries whose rows were made.

    Their reader says whether the record can be decoded, and raises NotCompared where it can.
    """

    def __init__(self, subject: Subject, plain: EntryReaders) -> None:
        self._all = bool(subject.pipeline.made_by)
        self._entries = subject.ledger.effective
        self._plain = plain
        names = [each.name for each in subject.pipeline.columns]
        self._records = EntryReaders(subject, schema_of(subject.pipeline.columns), names)

    def of(self, entry: int) -> Reader:
        """The reader for the records of an entry, by its index."""
        if not self._all and not self._entries[entry].transform:
            return self._plain.of(entry)
        read = self._records.of(entry)

        def made(value: bytes) -> NoReturn:
            read(value)
            raise NotCompared

        return made


class LeftOut:
    """The records without a row, by entry, against the number that its commit tells."""

    def __init__(self, entries: Sequence[LedgerEntry]) -> None:
        self._entries = entries
        made = np.array([bool(each.transform) and each.left_out != 0 for each in entries], bool)
        self._may = made
        self._found: Counter[int] = Counter()
        self._shown: dict[int, list[str]] = {}

    def without(
        self, partition: Partition, missing: Offsets, entries: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Which of these offsets, each of a visible record without a row, must have one.

        ``entries`` are the indices of their entries. The others are counted.
        """
        if not self._may.any():
            return np.ones(len(missing), bool)
        may: NDArray[np.bool_] = self._may[entries]
        for entry in np.unique(entries[may]).tolist():
            here = missing[may & (entries == entry)]
            self._found[entry] += len(here)
            lines = self._shown.setdefault(entry, [])
            lines += [f"{shown(partition)}@{each}" for each in here[: _SHOWN - len(lines)].tolist()]
        return ~may

    def report(self, findings: Findings) -> None:
        """Say how many were left out; more than the commit tells of are missing."""
        left = 0
        for entry, found in sorted(self._found.items()):
            most = self._entries[entry].left_out
            more = 0 if most is None else max(0, found - most)
            left += found - more
            if more:
                line = f"entry {self._entries[entry].sequence}: {count(found, 'record')} without a"
                line += f" row, but {most} left out by {self._entries[entry].transform}; among them"
                findings.add(Kind.MISSING, f"{line} {', '.join(self._shown[entry])}", count=more)
        if left:
            line = f"{count(left, 'record')} without a row: the transform left them out"
            findings.leave(Unchecked.LEFT_OUT, line, left)
