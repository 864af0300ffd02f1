"""All steps of a batch, for tests of landings alone: nothing is asked of Kafka or read back."""

from __future__ import annotations

from contextlib import closing

from rivermouth.protocol.commits import CommitPlan
from rivermouth.run.steps import Guard, Steps
from rivermouth.write.landing import Changes, Landing, RawBatch


def land(
    landing: Landing, batch: RawBatch | Changes, plan: CommitPlan, guard: Guard | None = None
) -> None:
    """Stage the batch and commit it, as a run does."""
    with closing(Steps(landing, batch, guard)) as steps:
        steps.write(plan)
        steps.after(plan)
