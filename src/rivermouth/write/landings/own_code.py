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
from rivermouth.write.landing import Site, in_parts
from rivermouth.write.rows import Plain, Rows
from rivermouth.write.transform import RowsOfRecord, Transform

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
        tasks = self._site.tasks  # asked once: a cluster may shrink meanwhile
        parts = in_parts(rows, tasks)

        def write_parts(made: DataFrame) -> Written:
            return write(in_parts(made.select(self._made), tasks))

        with self._transform.blamed(Batch.of(plan)):
            try:
                return self._in_one_pass(parts, tasks, plan, target, write_parts)
            except _Partly:
                return self._kept(parts, plan, target, write_parts, stack)

    def _in_one_pass(
        self,
        parts: DataFrame,
        tasks: int | None,
        plan: CommitPlan,
        target: QuarantineTarget,
        write: Write,
    ) -> Written:
        """Raises _Partly where the counts would not be exact; then nothing is left behind."""
        source, ranges = self._site.pipeline.source, plan.draft.ranges
        tasks = min(sum(1 for each in ranges if each.span), tasks or len(ranges))
        with reporting(target, self._site.reports) as output:
            made = self._transform.made(
                self._good(parts, output).select(self._given), Batch.of(plan)
            )
            if made.of_record is RowsOfRecord.ANY or source.in_parts:
                raise _Partly
            written = write(made.rows)
            told = diverted(output.reports, self._site.pipeline.name)
            if told.tasks < tasks:  # Spark does not read at all where no row can be left
                if self._site.store is not None:
                    self._site.store.delete(each.name for each in written.good)
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
            return _with(write(made.rows), told)

    def _good(self, parts: DataFrame, output: QuarantineOutput) -> DataFrame:
        return parts.mapInArrow(Rebatched(Sieve(output, self._decode)), self._sieved)


def _with(written: Written, told: Diverted) -> Written:
    return replace(written, bad=told.files, counted=told.counted)


def own_code_of(site: Site, rows: Rows, decode: Decoder) -> OwnCode | None:
    """The own code of a pipeline whose rows are added; None where they are the records."""
    if not isinstance(rows, Plain) or rows.transform is None:
        return None
    return OwnCode(site, rows, rows.transform, decode)
