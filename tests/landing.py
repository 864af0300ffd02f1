"""All steps of a batch, for tests of landings alone: nothing is asked of Kafka or read back."""

from __future__ import annotations

from contextlib import closing
from functools import partial

from rivermouth.protocol.commits import CommitPlan
from rivermouth.run.steps import Guard, Stage, Steps
from rivermouth.write.landing import Landing, RawBatch


def land(landing: Landing, batch: RawBatch, plan: CommitPlan, guard: Guard | None = None) -> None:
    """Stage the batch and commit it, as a run does."""
    take_steps(partial(landing.stage, batch), plan, guard)


def take_steps(stage: Stage, plan: CommitPlan, guard: Guard | None = None) -> None:
    """The same of anything that is staged."""
    with closing(Steps(stage, guard)) as steps:
        steps.write(plan)
        steps.after(plan)
