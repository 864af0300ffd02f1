"""Which ids in a sink may be those of former records: the same offsets, sent for another reason."""

from __future__ import annotations

import numpy as np

from rivermouth.verify.ledger.coverage import Former, Offsets
from rivermouth.verify.ledger.entry import Partition
from rivermouth.verify.subject import Subject


class FormerIds:
    """Ids from before accepted changes of the source, and of entries that were rolled back.

    Nobody takes back what was sent: a RESTORE or a TRUNCATE takes the entries, but not the records
    in a topic.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        versions = {each.version for each in subject.ledger.effective}
        ranges: dict[Partition, list[tuple[int, int, int]]] = {}
        for entry in subject.ledger.recorded:
            if entry.version in versions:
                continue
            for each in entry.ranges:
                if each.start < each.until:
                    ranges.setdefault(each.partition, []).append((each.start, each.until, -1))
        self._undone = Former(ranges)

    def times(self, partition: Partition, offsets: Offsets) -> Offsets:
        """How many former records each offset may have: each left one copy or more."""
        accepted = self._subject.coverage.former.times(partition, offsets)
        undone = self._undone.times(partition, offsets)
        return accepted + undone + self._subject.removed_changes

    def has(self, partition: Partition, offset: int) -> bool:
        """Whether the offset may have any."""
        if not self._subject.has_former(partition) and partition not in self._undone:
            return False
        return bool(self.times(partition, np.array([offset], np.int64))[0])
