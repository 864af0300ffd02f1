"""What each shape of table gives the checker: a proof of its rows, and what a proof works with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.proofs.quarantine import Quarantined
from rivermouth.verify.subject import Subject
from rivermouth.verify.tables.ports import Rows, Unreadable

Progress = Callable[[str, int, int], None]
"""Called with pipeline, offsets done, offsets in all."""


@dataclass(frozen=True)
class Bounds:
    """How much is held in memory at once.

    ``window``: offsets of one partition, see ``append``; ``bucket``: records of keys, see
    ``keyed``. ``values``: up to so many offsets the values of all rows of an append are compared.
    """

    window: int = 1 << 20
    bucket: int = 50_000
    values: int = 200_000

    @staticmethod
    def of_every_value() -> Bounds:
        """All values are compared; the windows are smaller, since their rows are in memory."""
        return Bounds(window=1 << 14, values=1 << 62)


@dataclass(frozen=True)
class Stored:
    """What a pipeline wrote: the rows of its table, and its quarantined records by partition."""

    table: Rows
    quarantine: Mapping[Partition, Quarantined]

    def require(self, columns: Iterable[str]) -> None:
        """Raises Unreadable where the table does not have all these columns."""
        lacking = sorted({*columns} - {*self.table.schema.names})
        if lacking:
            raise Unreadable(f"it lacks the columns {', '.join(lacking)}")


@dataclass(frozen=True)
class Workspace:
    """What a proof may use: an empty folder, bounds of memory, and whom to tell of progress."""

    folder: Path
    bounds: Bounds
    progress: Progress


class Proof(Protocol):
    """Compares the rows of one table with Kafka; ``Shape.proof`` of the registry names one."""

    def __call__(self, subject: Subject, stored: Stored, workspace: Workspace) -> None:
        """Add every difference to ``subject.findings``, and to ``unchecked`` what is not checked.

        Called once for each pipeline, after its ledger and its quarantine were read. Reads Kafka
        by ``replay``, once and to the end: that also counts the visible records of each range and
        compares the quarantined ones. Raises Unreadable and SourceError.
        """
