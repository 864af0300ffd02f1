"""The offsets table in memory."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from rivermouth.protocol.snapshot import ProjectedEntry
from rivermouth.warehouse.ports import Counted, Projection


@dataclass
class MemoryOffsets:
    """The ``OffsetsTable`` in memory: the entries that were projected, in order.

    ``tells_txn``: whether a ``txn`` tells the newest sequence; else, as in a catalog, only the
    rows do, and an entry without ranges leaves none.
    """

    tells_txn: bool = True
    projected: list[Counted] = field(default_factory=list)
    txns: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def sequence(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        if self.tells_txn:
            return self.txns.get(pipeline, 0)
        newest = self.newest(pipeline)
        return newest.sequence if newest is not None else 0

    def newest(self, pipeline: str) -> ProjectedEntry | None:
        """See ``ports.OffsetsTable``."""
        recorded = [each.recorded for each in self.projected if each.rows]
        ours = [each for each in recorded if each.entry.pipeline == pipeline]
        if not ours:
            return None
        last, version = ours[-1].entry, ours[-1].version
        return ProjectedEntry(
            last.sequence, version, last.commit, last.cluster, last.topics, last.position
        )

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        return self.noted.get(pipeline, 0)

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        self.noted[pipeline] = max(version, self.rollback_noted(pipeline))

    def project(self, entries: Sequence[Counted], table_name: str) -> None:
        """See ``ports.OffsetsTable``."""
        del table_name
        with self._turn:
            for each in entries:
                entry = each.recorded.entry
                if entry.sequence > self.sequence(entry.pipeline) and (each.rows or self.tells_txn):
                    self.projected.append(each)
                    self.txns[entry.pipeline] = entry.sequence

    def project_all(self, projections: Sequence[Projection]) -> None:
        """See ``ports.OffsetsTable``."""
        for each in projections:
            self.project(each.entries, each.table_name)

    def version(self) -> int:
        """See ``ports.OffsetsTable``: there are no versions."""
        return 0

    def compact(self) -> None:
        """See ``ports.OffsetsTable``: there are no files."""

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``: all is kept."""
