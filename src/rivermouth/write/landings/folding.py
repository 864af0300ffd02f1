"""Folding the records of a batch to changes by key, and counting them on the way.

A bad record fails the fold by ``REFUSAL`` once it is evaluated, unless a sieve takes it out. Where
the shape knows a fold in two steps, tasks make the first one while they decode; see ``Partly``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from rivermouth.formats.decoder import decoder_to_fold
from rivermouth.formats.sieve import Sieve
from rivermouth.formats.staged import Before
from rivermouth.protocol.entry import Counts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.bad_records import refusing
from rivermouth.write.counts import CountedOnTheWay, few
from rivermouth.write.landing import RawBatch, Site
from rivermouth.write.rows import RECORDS, Keyed


@dataclass(frozen=True)
class Folded:
    """The fold of a batch, and what counts its records when it is evaluated, once.

    ``decoded`` gives the records, where they have to be counted again.
    """

    changes: DataFrame
    decoded: Callable[[], DataFrame]
    counting: CountedOnTheWay

    def counts(self, records: int | None) -> Counts:
        """How many records each range has; see ``CountedOnTheWay.counts``."""
        return self.counting.counts(self.decoded, records)


class Folding:
    """Folds the batches of one pipeline."""

    def __init__(self, site: Site, rows: Keyed) -> None:
        self._site, self._rows = site, rows
        self._refusing = refusing()
        self._decode = _decode(site, rows)

    def sieved(self, rows: DataFrame, sieve: Sieve) -> DataFrame:
        """The fold of Kafka's rows without those that the ``sieve`` takes out, and counts."""
        partly = self._rows.partly
        if partly is not None:
            return partly.fold(partly.before(self._site.few(rows), sieve))
        if self._decode is None:
            raise TypeError("a sieve asks for a format that decodes in a task")
        good = self._decode(rows, sieve).withColumn("_kafka", self._refusing)
        return self._rows.fold(good)

    def of(self, batch: RawBatch, ranges: Sequence[OffsetRange], **more: Column) -> Folded:
        """The fold of a batch, not evaluated yet; ``more`` are aggregates of decoded rows."""
        counting, partly = CountedOnTheWay(ranges), self._rows.partly

        def decoded() -> DataFrame:
            if self._decode is None:
                return self._site.few(batch.decoded())
            return self._site.few(self._decode(batch.rows, None))

        if partly is not None and few(ranges) and not more:
            partial = partly.before(self._site.few(batch.rows), None)
            changes = partly.fold(counting.watched_parts(partial, RECORDS))
        else:
            refused_at_once = decoded().withColumn("_kafka", self._refusing)
            changes = self._rows.fold(counting.watched(refused_at_once, **more))
        return Folded(changes, decoded, counting)


def _decode(site: Site, rows: Keyed) -> Before | None:
    """What decodes as much as the fold reads; None where the pipeline is not known."""
    if site.config is None:
        return None
    return decoder_to_fold(site.config, site.tasks, rows.reads, ordered=rows.ordered)
