"""All steps of a batch, for tests of landings alone: nothing is asked of Kafka or read back."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from rivermouth.protocol.commits import CommitPlan
from rivermouth.run.steps import Guard, Steps
from rivermouth.write.landing import Changes, Landing, RawBatch


def land(
    landing: Landing, batch: RawBatch | Changes, plan: CommitPlan, guard: Guard | None = None
) -> None:
    """Stage the batch and commit it, as a run does."""
    with closing(Steps(partial(landing.stage, batch), guard)) as steps:
        steps.write(plan)
        steps.after(plan)
