"""Rows to send that a pipeline's own code made of the good records of a batch.

They are made and checked before anything is sent, or committed, and kept until all are sent. So
the records that were left out are known before the commit, whose entry tells their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermouth.config import Pipeline
from rivermouth.protocol.batch import Batch
from rivermouth.protocol.commits import CommitPlan
from rivermouth.spark.address import quoted
from rivermouth.write.bad_records import refusing
from rivermouth.write.sinks.order import in_order
from rivermouth.write.transform.place import placed
from rivermouth.write.transform.shape import RowsOfRecord
from rivermouth.write.transform.transform import Transform

_PLACE = ("topic", "partition", "offset")
_UNMOVED = (RowsOfRecord.ONE, RowsOfRecord.AT_MOST_ONE)
"""So made, rows stay in the order of their records."""


@dataclass(frozen=True)
class ToSend:
    """``rows`` as a sink takes them: ``row``, ``_kafka``, and the ``key`` and ``headers`` of the
    record where they are sent.

    ``number``: how many there are.
    """

    rows: DataFrame
    number: int


class MadeToSend:
    """The own code of one pipeline that sends."""

    def __init__(self, pipeline: Pipeline, transform: Transform) -> None:
        self._transform = transform
        # Built once: each is many calls into the JVM, too dear per batch.
        row = F.col("row")
        self._given = [row.getField(each.name).alias(each.name) for each in pipeline.columns]
        self._refusing = refusing()
        self._row = F.struct(*(F.col(quoted(each.name)) for each in pipeline.row_columns))
        self._placed = placed(pipeline.target)
        target = pipeline.target
        with_key = target.kafka is not None and not target.message_key
        asked = {"key": with_key, "headers": target.forward_headers}
        self._carried = [name for name, sent in asked.items() if sent]

    def made(
        self, good: DataFrame, plan: CommitPlan, keep: Callable[[DataFrame], DataFrame]
    ) -> ToSend:
        """What is to be sent of good decoded rows, which can be read several times.

        All of it is evaluated here, and kept by ``keep``. Raises TransformFailed.
        """
        batch = Batch.of(plan)
        try:
            # First, since Spark shows only the first columns of many in a plan, which is looked at.
            given = good.select(self._refusing, *self._given)
            made = self._transform.made(given, batch)
            rows = made.rows.select(self._row.alias("row"), self._placed)
            if self._carried:
                rows = _with(rows, good, self._carried)
            if self._carried or made.of_record not in _UNMOVED:
                rows = in_order(rows)
            kept = keep(rows)
            return ToSend(kept, kept.count())
        except Exception as fault:
            failed = self._transform.blamed(fault, batch)
            if failed is None:
                raise
            raise failed from fault


def _with(rows: DataFrame, good: DataFrame, carried: Sequence[str]) -> DataFrame:
    """The rows, each with the message key, or the headers, of its record."""
    kafka = F.col("_kafka")
    place = (kafka.getField(each).alias(f"of_{each}") for each in _PLACE)
    same = [kafka.getField(each) == F.col(f"of_{each}") for each in _PLACE]
    joined = rows.join(good.select(*place, *carried), same, "left")
    return joined.select("row", "_kafka", *carried)
