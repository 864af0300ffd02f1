"""Rows at offsets that only ranges from before an accepted change of the source cover.

Kafka no longer shows their records. So they are counted, and looked through for doubles.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rivermouth.verify.ledger.coverage import Offsets
from rivermouth.verify.ledger.entry import Partition, shown
from rivermouth.verify.proofs.several_rows import may_explode
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import PROBLEM_LINES, Kind
from rivermouth.verify.subject import Subject


class FormerRows:
    """Their offsets wait on disk, in windows of ``window`` offsets."""

    def __init__(self, subject: Subject, folder: Path, window: int) -> None:
        self.count = 0
        self._subject = subject
        self._spill = Spill(folder)
        self._window = window
        self._names: dict[tuple[Partition, int], None] = {}

    def add(self, partition: Partition, offsets: Offsets) -> None:
        """Keep the offsets of rows of a partition."""
        self.count += len(offsets)
        numbers = offsets // self._window
        for number in np.unique(numbers).tolist():
            name = (partition, number)
            self._names[name] = None
            self._spill.add(name, offsets[numbers == number].tobytes())

    def check(self) -> None:
        """Add a finding for each row that is there more often than ranges cover its offset.

        Where a record of theirs may have had several rows, nobody can tell.
        """
        if may_explode(self._subject):
            return
        former, removed = self._subject.coverage.former, self._subject.removed_changes
        for partition, number in sorted(self._names):
            held = np.frombuffer(self._spill.take((partition, number)), np.int64)
            offsets, times = np.unique(held, return_counts=True)
            more = times - former.times(partition, offsets) - removed
            lines = [
                f"{shown(partition)}@{offset}: more than once in the table"
                for offset in offsets[more > 0][:PROBLEM_LINES].tolist()
            ]
            number_of = int(more[more > 0].sum())
            self._subject.findings.add(Kind.DUPLICATED, *lines, count=number_of)
