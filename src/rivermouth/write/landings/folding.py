"""Folding the records of a batch to changes by key, and counting them on the way.

A bad record fails the fold by ``REFUSAL`` once it is evaluated. Where the shape knows a fold in two
steps, tasks make the first one while they decode; see ``Partly``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from rivermouth.formats.decoder import decoder_to_fold
from rivermouth.protocol.entry import Counts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.bad_records import refusing
from rivermouth.write.counts import CountedOnTheWay, few
from rivermouth.write.landing import Decode, RawBatch, Site
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

    def of(self, batch: RawBatch, ranges: Sequence[OffsetRange], **more: Column) -> Folded:
        """The fold of a batch, not evaluated yet; ``more`` are aggregates of decoded rows."""
        counting, partly = CountedOnTheWay(ranges), self._rows.partly

        def decoded() -> DataFrame:
            return self._site.few((self._decode or batch.decode)(batch.rows))

        if partly is not None and few(ranges) and not more:
            partial = partly.before(self._site.few(batch.rows))
            changes = partly.fold(counting.watched_parts(partial, RECORDS))
        else:
            refused_at_once = decoded().withColumn("_kafka", self._refusing)
            changes = self._rows.fold(counting.watched(refused_at_once, **more))
        return Folded(changes, decoded, counting)


def _decode(site: Site, rows: Keyed) -> Decode | None:
    """What decodes as much as the fold reads; None where the pipeline is not known."""
    if site.config is None:
        return None
    return decoder_to_fold(site.config, site.tasks, rows.reads, ordered=rows.ordered)
