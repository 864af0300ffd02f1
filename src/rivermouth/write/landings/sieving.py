"""Folds whose tasks set bad records apart: what they wrote becomes quarantine, what they counted
the counts of the entry.

So a bad record costs no failed attempt and no second read. That is where driver and tasks share
this machine's disk, where the quarantine is a table that is understood, and where the format
decodes in a task. Elsewhere a bad record fails the fold, see ``write.bad_records``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from rivermouth.config import Commit, Pipeline
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.write.files.counts import counted_ranges, records_of
from rivermouth.write.files.known import why_not
from rivermouth.write.files.quarantine import QuarantineFiles
from rivermouth.write.files.sieve import QuarantineSieve, sifted
from rivermouth.write.landing import Site


class Sieving:
    """Makes the sieves of one pipeline's batches, and takes in what they held back."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._possible = site.config is not None and may_sieve(site, site.config)
        bad = site.quarantine
        self._bad = QuarantineFiles(bad.address.path, site.pipeline, bad.reasons)
        self._stage: Path | None = None

    def begin(self, plan: CommitPlan) -> QuarantineSieve | None:
        """A sieve for one evaluation of the plan's batch; None: bad records fail it."""
        if not self._possible:
            return None
        table = self._bad.definition()
        if table is not None and why_not(table):
            return None
        self._stage = self._stage or self._site.staging()
        reports = self._stage / f"{plan.commit}-reports"
        shutil.rmtree(reports, ignore_errors=True)  # of an evaluation that failed
        reports.mkdir(parents=True)
        return QuarantineSieve(self._bad.apart(plan, table), reports)

    def end(self, sieve: QuarantineSieve, plan: CommitPlan) -> Counts | None:
        """Once the batch was evaluated: the counts. Bad records are in quarantine then.

        None where fewer tasks have told of themselves than there were: nothing is done. Raises
        BatchFailed.
        """
        found = sifted(sieve.reports, self._site.pipeline)
        shutil.rmtree(sieve.reports, ignore_errors=True)
        if found.tasks < self._expected(plan):
            return None
        numbers = found.good, records_of(found.bad)
        counts = counted_ranges(*numbers, plan.draft.ranges, self._site.pipeline)
        self._bad.commit(found.bad, plan)
        return counts

    def _expected(self, plan: CommitPlan) -> int:
        """How many tasks decode a batch: Spark reads each range in one part (``may_sieve``)."""
        parts = sum(1 for each in plan.draft.ranges if each.span)
        return min(parts, self._site.tasks or parts)


def may_sieve(site: Site, pipeline: Pipeline) -> bool:
    """Whether tasks may set bad records apart, as far as the configuration tells.

    Not where Spark's writer is asked for, or may write the same quarantine at the same time; nor
    where Spark reads one range in several parts, so that nobody knows how many there are.
    """
    source = pipeline.source
    return (
        site.tasks is not None
        and bool(site.quarantine.address.path)
        and pipeline.format.in_task is not None
        and not pipeline.made_by
        and not site.others
        and pipeline.target.commit is not Commit.SPARK
        and source.min_partitions is None
        and source.max_records_per_partition is None
    )
