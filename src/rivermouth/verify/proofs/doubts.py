"""Findings that hold only if Kafka still has a record: asked for at the end, all at once."""

from __future__ import annotations

from pathlib import Path

from rivermouth.verify.kafka.source import Source
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.spill import Spill
from rivermouth.verify.result import Findings, Kind

_OFFSETS = 1 << 20
"""The doubts of so many offsets are in memory at once."""


class Doubts:
    """Rows of compacted topics that are wrong, unless compaction removed their records.

    They wait on disk, so that Kafka is asked in the order of the offsets.
    """

    def __init__(self, folder: Path) -> None:
        self._spill = Spill(folder)
        self._names: dict[tuple[Partition, int], None] = {}

    def add(self, partition: Partition, offset: int, kind: Kind, line: str) -> None:
        """Keep a finding about the row of one record."""
        name = (partition, offset // _OFFSETS)
        self._names[name] = None
        self._spill.add_items(name, [(offset, kind.value, line)])

    def settle(self, source: Source, findings: Findings) -> int:
        """Add the findings whose records Kafka still has; returns how many it has not."""
        explained = 0
        for name in sorted(self._names):
            doubts = [*self._spill.take_items(name)]
            held = source.held(name[0], [offset for offset, _, _ in doubts])
            for offset, kind, line in doubts:
                if offset in held:
                    findings.add(Kind(kind), line)
                else:
                    explained += 1
        self._names.clear()
        return explained
