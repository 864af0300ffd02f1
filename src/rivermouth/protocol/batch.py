"""A batch as a pipeline's own code sees it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.offsets import OffsetRange, TopicPartition


@dataclass(frozen=True)
class Batch:
    """Which offsets a batch covers, and under which number and id it is committed.

    ``pipeline`` is its name in the ledger, ``sequence`` the number of its entry there. ``commit``
    is the id of this attempt: an attempt that meets a conflict is made again under another id, with
    the same sequence and ranges. ``ranges`` are in order; some may be empty.
    """

    pipeline: str
    sequence: int
    commit: str
    ranges: tuple[OffsetRange, ...]

    @staticmethod
    def of(plan: CommitPlan) -> Batch:
        """The batch of a planned commit."""
        draft = plan.draft
        return Batch(draft.pipeline, draft.sequence, plan.commit, draft.ranges)

    def range_of(self, topic: str, partition: int) -> OffsetRange | None:
        """The range of one partition; None where the batch has none."""
        place = TopicPartition(topic, partition)
        return next((each for each in self.ranges if each.topic_partition == place), None)
