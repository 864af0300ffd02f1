"""What a check says: findings, each of one fault, and how much was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.checker.cursor import Cursor

SHOWN = 5


class Fault(Enum):
    """What can be wrong, and what that means."""

    LOST_RANGE = "an entry starts after the position: offsets that nobody read"
    DUP_RANGE = "an entry starts before the position and ends after it"
    REWIND = "a position goes back though nobody accepted that"
    SEQUENCE = "an entry's number does not follow on the last one"
    LEDGER = "an entry, its txn or its identity is not as the format says"
    UNDONE = "commits were undone, and the pipeline went on without acceptance"
    CONSERVATION = "the records of a range are not the rows it left"
    ERASURE = "rows that were deleted on purpose are not those that an entry names"
    LOST = "a visible record has left no row"
    DUPLICATE = "a record or a key has more than one row"
    PHANTOM = "a row comes from no record that an entry accounts for"
    ABORTED_READ = "a row comes from an aborted or refused write"
    INCONSISTENT = "a row is not what its record says"
    ORDER = "an older record stands where a newer one belongs"
    FOLD = "a row stands that the records of its key do not leave"
    QUARANTINE = "bad records and quarantined records are not the same"
    PROJECTION = "the offsets table does not say what the ledger says"
    UNSEEN = "an acknowledged write was not taken up"
    TORN = "a reader saw a snapshot that no entry leaves"
    MISSING_FILE = "a data file of the newest snapshot is gone"
    SECRET = "a secret stands in a text"
    UNREADABLE = "the evidence cannot be read"


@dataclass(frozen=True)
class Finding:
    """One fault, where it was found, and what was found there."""

    fault: Fault
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.fault.name} {self.where}: {self.what}"


@dataclass(frozen=True)
class Verdict:
    """The findings, and what they rest on.

    ``records`` were read again from Kafka, ``entries`` are in the ledgers, ``snapshots``
    were compared with the records before them. ``unchecked`` rows, keys and ranges could not
    be judged, because Kafka or VACUUM has taken what they came from: never a finding.
    """

    findings: tuple[Finding, ...]
    records: int
    entries: int
    snapshots: int
    unchecked: int
    cursor: Cursor

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def faults(self) -> frozenset[Fault]:
        """The classes of what was found."""
        return frozenset(each.fault for each in self.findings)

    def __str__(self) -> str:
        counts = (
            f"{self.records} records, {self.entries} entries, {self.snapshots} snapshots, "
            f"{self.unchecked} unchecked, {len(self.findings)} findings"
        )
        return "\n".join([counts, *map(str, self.findings)])


def some(items: Sequence[object]) -> str:
    """The number of the items, and the first few."""
    more = ", …" if len(items) > SHOWN else ""
    return f"{len(items)} ({', '.join(map(str, items[:SHOWN]))}{more})"
