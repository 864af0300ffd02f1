"""Rows that a pipeline's own code makes, as files: one pass, counts and all.

An entry counts records, and own code may leave rows out or make several. So tasks count before it,
and divert bad records there: its rows go on to the tasks' files. That is exact where each task
reads its part to the end, once. Code that looks at other rows may ask for a part twice, or for some
rows of it. Its records are kept, and counted by an evaluation of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config.source import kafka_struct
from rivermouth.formats.arrow import Rebatched
from rivermouth.formats.tasks import Decoder
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.tables import quoted
from rivermouth.write.evaluation import refusing
from rivermouth.write.files.bad_records import (
    Diverted,
    QuarantineOutput,
    QuarantineTarget,
    diverted,
    reporting,
)
from rivermouth.write.files.writing import Sieve, Written
from rivermouth.write.landing import Site
from rivermouth.write.rows import Plain, Rows
from rivermouth.write.transform import Made, RowsOfRecord, Transform

Write = Callable[[DataFrame], Written]
"""Writes decoded rows as files."""


class _Partly(Exception):
    """Not each record was read exactly once on the way through the code."""


class OwnCode:
    """Makes the rows of one pipeline."""

    def __init__(self, site: Site, rows: Plain, own: Transform, decode: Decoder) -> None:
        self._site, self._transform, self._decode = site, own, decode
        # Built once: each is many calls into the JVM, too dear per batch.
        self._given = [refusing(), *rows.columns]
        columns, source = site.pipeline.row_columns, site.pipeline.source
        row = F.struct(*(F.col(quoted(each.name)) for each in columns)).alias("row")
        self._made = [row, F.col("_kafka"), F.lit(None).cast("string").alias("code")]
        fields = ", ".join(f"{quoted(each.name)}: {each.type}" for each in site.pipeline.columns)
        kafka = kafka_struct(source.metadata)
        self._sieved = f"row STRUCT<{fields}>, _kafka {kafka}, code STRING"

    def written(
        self,
        rows: DataFrame,
        plan: CommitPlan,
        target: QuarantineTarget,
        write: Write,
        stack: ExitStack,
    ) -> Written:
        """What ``write`` wrote of what the code makes of ``rows``, with the counts of records.

        What is kept meanwhile is in ``stack``. Raises TransformFailed, and BatchFailed.
        """
        parts = self._site.coalesced(rows)
        with self._transform.blamed(Batch.of(plan)):
            try:
                return self._in_one_pass(parts, plan, target, write)
            except _Partly:
                return self._kept(parts, plan, target, write, stack)

    def _in_one_pass(
        self, parts: DataFrame, plan: CommitPlan, target: QuarantineTarget, write: Write
    ) -> Written:
        """Raises _Partly where the counts would not be exact; then nothing is left behind."""
        source, ranges = self._site.pipeline.source, plan.draft.ranges
        tasks = min(sum(1 for each in ranges if each.span), self._site.tasks or len(ranges))
        with reporting(target, self._site.reports) as output:
            made = self._transform.made(
                self._good(parts, output).select(self._given), Batch.of(plan)
            )
            if made.of_record is RowsOfRecord.ANY or source.in_parts:
                raise _Partly
            written = self._evaluated(made, write)
            told = diverted(output.reports, self._site.pipeline.name)
            if told.tasks < tasks:  # Spark does not read at all where no row can be left
                target.folder.store.delete(each.name for each in written.good)
                raise _Partly
        return _with(written, told)

    def _kept(
        self,
        parts: DataFrame,
        plan: CommitPlan,
        target: QuarantineTarget,
        write: Write,
        stack: ExitStack,
    ) -> Written:
        with reporting(target, self._site.reports) as output:
            good = self._site.keep(self._good(parts, output), plan, "good", stack)
            good.count()  # every part, to its end
            told = diverted(output.reports, self._site.pipeline.name)
            made = self._transform.made(good.select(self._given), Batch.of(plan))
            return _with(self._evaluated(made, write), told)

    def _good(self, parts: DataFrame, output: QuarantineOutput) -> DataFrame:
        return parts.mapInArrow(Rebatched(Sieve(output, self._decode)), self._sieved)

    def _evaluated(self, made: Made, write: Write) -> Written:
        return write(self._site.coalesced(made.rows.select(self._made)))


def _with(written: Written, told: Diverted) -> Written:
    return replace(written, bad=told.files, counted=told.counted)


def own_code_of(site: Site, rows: Rows, decode: Decoder) -> OwnCode | None:
    """The own code of a pipeline whose rows are added; None where they are the records."""
    if not isinstance(rows, Plain) or rows.transform is None:
        return None
    return OwnCode(site, rows, rows.transform, decode)
