"""What a check has read so far: the state that makes the next one short."""

from __future__ import annotations

from pathlib import Path

from tests.faults.checker.evidence import Evidence, Watched
from tests.faults.checker.history import History
from tests.faults.checker.projection import Projection
from tests.faults.checker.reader import SnapshotLog
from tests.faults.checker.table import Table
from tests.faults.checker.texts import Texts


class Cursor:
    """Everything read for one ``Evidence``; only good for the same evidence, grown."""

    def __init__(self, evidence: Evidence) -> None:
        by_table: dict[Path, list[Watched]] = {}
        for each in evidence.pipelines:
            by_table.setdefault(each.table, []).append(each)
        self.offsets = Projection(evidence.offsets)
        self.tables = [Table(each, self.offsets) for each in by_table.values()]
        self.history = History(evidence.history) if evidence.history else None
        self.snapshots = SnapshotLog(evidence.snapshots) if evidence.snapshots else None
        self.texts = Texts(evidence.secrets)
