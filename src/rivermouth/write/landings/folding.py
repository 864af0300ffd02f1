"""Folding the records of a batch to changes by key, counting them on the way.

A bad record fails the fold by ``REFUSAL`` once it is evaluated, see ``write.evaluation``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermouth.formats.decoder import decoder_to_fold
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.entry import Counts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.errors import said
from rivermouth.write.evaluation import InlineCounter, refusing, unless_refused
from rivermouth.write.landing import CountedBatch, Site, Staged
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


Write = Callable[[DataFrame, Counts, CommitPlan], object]
"""Commits the changes of a batch, with the entry of the plan that has these counts."""


def fold_or_split(
    fold: Callable[[], tuple[DataFrame, Counts]],
    split: Callable[[], tuple[CountedBatch, DataFrame]],
    write: Write,
    after: Callable[[CommitPlan], object] = lambda plan: None,
) -> Staged:
    """Stage the changes of a batch that ``fold`` makes, for ``write``.

    Where a bad record fails the fold, or a sum that overflows the write, those that ``split`` makes
    of the good records are written instead, behind the bad ones.
    """

    def whole() -> Staged:
        changes, counts = fold()

        def commit(plan: CommitPlan) -> None:
            unless_refused(lambda: write(changes, counts, plan), lambda: in_parts().commit(plan))

        return Staged(commit, after=after)

    def in_parts() -> Staged:
        rows, changes = split()

        def commit(plan: CommitPlan) -> None:
            rows.write_bad(plan)
            write(changes, rows.counts, plan)

        return Staged(commit, after=after)

    return unless_refused(whole, in_parts)


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
        self._decode = decoder_to_fold(
            site.pipeline, site.coalesced, rows.reads, ordered=rows.ordered
        )

    def of(self, rows: DataFrame, ranges: Sequence[OffsetRange], **more: Column) -> Fold:
        """The fold of Kafka's rows, to be evaluated; ``more`` are aggregates of decoded rows."""
        counting = InlineCounter(ranges)

        def decoded() -> DataFrame:
            return self._site.coalesced(self._decode(rows))

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
