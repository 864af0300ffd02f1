"""Folding the records of a batch to changes by key, counting them on the way.

A bad record fails the fold by ``REFUSAL`` once it is evaluated, unless a side output takes it out:
where driver and tasks share this machine's disk, the quarantine is a table that is understood, and
the format decodes in a task. There a bad record costs no failed attempt and no second read.
Elsewhere see ``write.evaluation``. Where the shape knows a fold in two steps, tasks make the first
one while they decode; see ``Partly``.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Commit
from rivermouth.errors import BatchFailed
from rivermouth.formats.arrow import REFUSAL, SideOutput
from rivermouth.formats.decoder import decoder_to_fold
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import why_not
from rivermouth.spark.errors import said
from rivermouth.write.evaluation import InlineCounter, has_own_counters, refusing
from rivermouth.write.files.bad_records import (
    Diverted,
    QuarantineOutput,
    QuarantineTarget,
    discard,
    diverted,
)
from rivermouth.write.files.data_files import counted_ranges, records_of
from rivermouth.write.landing import Site
from rivermouth.write.landings.driver_commits import quarantine_of, why_not_here
from rivermouth.write.rows import RECORDS, Keyed

RECORDS_MAX = 200_000
# Databricks also broadcasts from executor to executor, and says so in words of its own. The words
# may be few: whatever was written before carries the ``txn`` that a second write has, too.
_TOO_LARGE = re.compile(
    r"spark\.driver\.maxResultSize|not enough memory to (build|store)|cannot broadcast"
    r"|could not execute broadcast",
    re.IGNORECASE,
)


class Broadcast:
    """Changes of at most ``RECORDS_MAX`` records are broadcast, and of fewer where those did not
    fit: so the table is not shuffled. How large they are is not known before.
    """

    def __init__(self) -> None:
        self._most = RECORDS_MAX

    def write(self, records: int, small: Callable[[], None], large: Callable[[], None]) -> None:
        """Call ``small`` for few records; where they do not fit into a broadcast, then ``large``.

        After that, half as many records are few. Raises what the last call raises.
        """
        if records <= self._most:
            try:
                small()
            except Exception as fault:
                if not too_large(fault):
                    raise
                self._most = records // 2
            else:
                return
        large()


def too_large(fault: Exception) -> bool:
    """Whether a write failed since what it broadcasts is too large."""
    return _TOO_LARGE.search(said(fault)) is not None


class SideOutputs:
    """Makes the side outputs of one pipeline's batches, and takes in what they held back."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._possible = may_divert(site)
        self._bad = quarantine_of(site)

    @contextmanager
    def side_output(self, plan: CommitPlan) -> Iterator[QuarantineOutput | None]:
        """A side output for one evaluation of the plan's batch; None: bad records fail it.

        If the evaluation fails, what its tasks had written is removed.
        """
        target = self._target(plan)
        if target is None:
            yield None
            return
        # Tasks of an evaluation that failed may still tell: so each has a folder of its own.
        reports = self._site.stage / f"{plan.commit}-{uuid.uuid4()}"
        reports.mkdir(parents=True)
        try:
            yield QuarantineOutput(target, reports)
        except BaseException:
            discard(reports, target.folder.path)
            raise
        finally:
            shutil.rmtree(reports, ignore_errors=True)

    def _target(self, plan: CommitPlan) -> QuarantineTarget | None:
        """Where the tasks put bad records; None where they cannot."""
        if not self._possible:
            return None
        try:
            table = self._bad.definition()
        except BatchFailed:  # whatever is wrong with it, a batch without bad records is fine
            return None
        return None if table is not None and why_not(table) else self._bad.target(plan, table)

    def reported(self, side_output: QuarantineOutput, plan: CommitPlan) -> Diverted:
        """What the tasks have reported, once the batch was evaluated.

        Fails by ``REFUSAL`` where fewer have than there were. Raises BatchFailed.
        """
        found = diverted(side_output.reports, self._site.pipeline.name)
        if found.tasks < self._expected(plan):
            raise RuntimeError(f"{REFUSAL}, or none: not all tasks have told")
        return found

    def counts(self, found: Diverted, plan: CommitPlan) -> Counts:
        """The counts of the batch. Raises BatchFailed."""
        numbers = found.good, records_of(found.bad)
        return counted_ranges(*numbers, plan.draft.ranges, self._site.pipeline.name)

    def commit(self, found: Diverted, plan: CommitPlan) -> None:
        """Put the bad records into quarantine. Raises BatchFailed."""
        self._bad.commit(found.bad, plan)

    def _expected(self, plan: CommitPlan) -> int:
        """How many tasks decode a batch: Spark reads each range in one part (``may_divert``)."""
        parts = sum(1 for each in plan.draft.ranges if each.span)
        return min(parts, self._site.tasks or parts)


def may_divert(site: Site) -> bool:
    """Whether tasks may divert bad records, as far as the configuration tells.

    Not where Spark's writer is asked for, or may write the same quarantine at the same time; nor
    where Spark reads one range in several parts, so that nobody knows how many there are.
    """
    pipeline, source = site.pipeline, site.pipeline.source
    return (
        not why_not_here(site)
        and bool(site.quarantine.address.path)
        and pipeline.format.in_task is not None
        and not pipeline.made_by
        and not site.others
        and pipeline.target.commit is not Commit.SPARK
        and not source.in_parts
    )


@dataclass(frozen=True)
class Fold:
    """The fold of a batch, and what counts its records when it is evaluated, once.

    ``decoded`` gives the records, where they have to be counted again.
    """

    changes: DataFrame
    decoded: Callable[[], DataFrame]
    counting: InlineCounter


class Folding:
    """Folds the batches of one pipeline."""

    def __init__(self, site: Site, rows: Keyed) -> None:
        self._site, self._rows = site, rows
        self._refusing = refusing()
        # As much as the fold reads.
        self._decode = decoder_to_fold(site.pipeline, site.tasks, rows.reads, ordered=rows.ordered)

    def with_side_output(self, rows: DataFrame, side_output: SideOutput) -> DataFrame:
        """The fold of Kafka's rows without those that the ``side_output`` takes out, and counts."""
        partly = self._rows.partly
        if partly is not None:
            return partly.fold(partly.before(self._site.coalesced(rows), side_output))
        good = self._decode(rows, side_output).withColumn("_kafka", self._refusing)
        return self._rows.fold(good)

    def of(self, rows: DataFrame, ranges: Sequence[OffsetRange], **more: Column) -> Fold:
        """The fold of Kafka's rows, to be evaluated; ``more`` are aggregates of decoded rows."""
        counting, partly = InlineCounter(ranges), self._rows.partly

        def decoded() -> DataFrame:
            return self._site.coalesced(self._decode(rows, None))

        if partly is not None and has_own_counters(ranges) and not more:
            partial = partly.before(self._site.coalesced(rows), None)
            changes = partly.fold(counting.watched_parts(partial, RECORDS))
        else:
            refused_at_once = decoded().withColumn("_kafka", self._refusing)
            changes = self._rows.fold(counting.watched(refused_at_once, **more))
        return Fold(changes, decoded, counting)

    def counts(self, fold: Fold, written: DataFrame) -> Counts:
        """How many records each range has, once the changes of a fold were ``written`` down.

        On one host Spark computes nothing twice, so its metrics are right. Elsewhere what a lost
        executor had computed is computed again, so the records of the changes are added up.
        """
        if self._site.one_host:
            return fold.counting.counts(fold.decoded)
        [row] = written.agg(F.sum(RECORDS).alias(RECORDS)).collect()
        return fold.counting.counts(fold.decoded, int(row[RECORDS] or 0))
