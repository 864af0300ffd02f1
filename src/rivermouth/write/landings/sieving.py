"""Folds whose tasks set bad records apart: what they wrote becomes quarantine, what they counted
the counts of the entry.

So most bad records cost no failed attempt and no second read. That is where driver and tasks share
this machine's disk, where the quarantine is a table that is understood, and where the format
decodes in a task. Elsewhere a bad record fails the fold, see ``write.bad_records``.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rivermouth.config import Commit
from rivermouth.errors import BatchFailed
from rivermouth.formats.in_arrow import REFUSAL
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.write.files.apart import Apart
from rivermouth.write.files.counts import counted_ranges, records_of
from rivermouth.write.files.known import why_not
from rivermouth.write.files.sieve import QuarantineSieve, Sifted, discard, sifted
from rivermouth.write.landing import Site
from rivermouth.write.landings.by_driver import quarantine_of, why_not_here


class Sieving:
    """Makes the sieves of one pipeline's batches, and takes in what they held back."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._possible = may_sieve(site)
        self._bad = quarantine_of(site)
        self._stage: Path | None = None

    @contextmanager
    def sieve(self, plan: CommitPlan) -> Iterator[QuarantineSieve | None]:
        """A sieve for one evaluation of the plan's batch; None: bad records fail it.

        If the evaluation fails, what its tasks had written is removed.
        """
        apart = self._apart(plan)
        if apart is None:
            yield None
            return
        self._stage = self._stage or self._site.staging()
        # Tasks of an evaluation that failed may still tell: so each has a folder of its own.
        reports = self._stage / f"{plan.commit}-{uuid.uuid4()}"
        reports.mkdir(parents=True)
        try:
            yield QuarantineSieve(apart, reports)
        except BaseException:
            discard(reports, apart.folder.path)
            raise
        finally:
            shutil.rmtree(reports, ignore_errors=True)

    def _apart(self, plan: CommitPlan) -> Apart | None:
        """Where the tasks put bad records; None where they cannot."""
        if not self._possible:
            return None
        try:
            table = self._bad.definition()
        except BatchFailed:  # whatever is wrong with it, a batch without bad records is fine
            return None
        return None if table is not None and why_not(table) else self._bad.apart(plan, table)

    def told(self, sieve: QuarantineSieve, plan: CommitPlan) -> Sifted:
        """What the tasks have told, once the batch was evaluated.

        Fails by ``REFUSAL`` where fewer have told than there were. Raises BatchFailed.
        """
        found = sifted(sieve.reports, self._site.pipeline)
        if found.tasks < self._expected(plan):
            raise RuntimeError(f"{REFUSAL}, or none: not all tasks have told")
        return found

    def commit(self, found: Sifted, plan: CommitPlan) -> Counts:
        """The counts of the batch, whose bad records are in quarantine then. Raises BatchFailed."""
        numbers = found.good, records_of(found.bad)
        counts = counted_ranges(*numbers, plan.draft.ranges, self._site.pipeline)
        self._bad.commit(found.bad, plan)
        return counts

    def _expected(self, plan: CommitPlan) -> int:
        """How many tasks decode a batch: Spark reads each range in one part (``may_sieve``)."""
        parts = sum(1 for each in plan.draft.ranges if each.span)
        return min(parts, self._site.tasks or parts)


def may_sieve(site: Site) -> bool:
    """Whether tasks may set bad records apart, as far as the configuration tells.

    Not where Spark's writer is asked for, or may write the same quarantine at the same time; nor
    where Spark reads one range in several parts, so that nobody knows how many there are.
    """
    pipeline = site.config
    if pipeline is None or why_not_here(site):
        return False
    source = pipeline.source
    return (
        bool(site.quarantine.address.path)
        and pipeline.format.in_task is not None
        and not pipeline.made_by
        and not site.others
        and pipeline.target.commit is not Commit.SPARK
        and not source.in_parts
    )
