"""What all partitions of a pipeline that sends share while it is verified."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rivermouth.verify.proofs.entry_readers import EntryReaders
from rivermouth.verify.proofs.made_rows import LeftOut
from rivermouth.verify.proofs.sent_ids import FormerIds
from rivermouth.verify.proofs.sent_records import SentRecords
from rivermouth.verify.proofs.sent_topics import SentTopics
from rivermouth.verify.result import Unchecked, count
from rivermouth.verify.subject import Subject

_AT_MOST_ONCE = "at-most-once"


class Sinks:
    """Where each entry sent its records, and counts.

    ``kinds`` are the types of the columns.
    """

    def __init__(
        self,
        subject: Subject,
        sent: SentRecords,
        topics: SentTopics,
        former: FormerIds,
        readers: EntryReaders,
        kinds: Sequence[pa.DataType],
        stride: int,
    ) -> None:
        self.subject, self.sent, self.topics, self.former = subject, sent, topics, former
        self.readers, self.kinds, self.stride = readers, kinds, stride
        self.in_a_function = 0
        self.untold = 0
        """Records whose values could not be compared."""
        self.made = 0
        """Records of which own code made what was sent; values are not compared."""
        self.left_out = LeftOut(subject.ledger.effective)
        configs = [each.config for each in subject.ledger.effective]
        self.once = np.array([each.get("delivery") == _AT_MOST_ONCE for each in configs], bool)

    def report(self) -> None:
        """Say how many records could not be compared, and how many were left out."""
        self.left_out.report(self.subject.findings)
        if self.made:
            line = f"the values of {count(self.made, 'record')}: transform or select made them"
            self.subject.findings.leave(Unchecked.MADE, line, self.made)
        if self.untold:
            line = f"the values of {count(self.untold, 'record')} in the sink: verify cannot tell"
            self.subject.findings.leave(Unchecked.VALUES, line, self.untold)
