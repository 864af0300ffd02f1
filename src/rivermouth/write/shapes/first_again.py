"""The first row of each key, once more: all that was ever read, and the table that it left.

Each key gets the row of its first record, see ``first``. A row that is right stays untouched: only
what differs is written. The records are those of all entries, from the first one on. The entries
decide in their order; in one entry the least (topic, partition, offset) is the first. So each
record is told the sequence of its entry. A part of the entries would not do: an earlier record of
a key that has lost its row would be passed over, and a later one would become its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from rivermouth.config import Pipeline
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.write.rows import Keyed
from rivermouth.write.shapes.first import first, first_of
from rivermouth.write.shapes.once_more import differs, with_sequence


def first_again(pipeline: Pipeline, of_entries: Sequence[tuple[int, OffsetRange]]) -> Keyed:
    """The changes that mend the table; ``of_entries`` are the ranges of entries by sequence."""
    known = first(pipeline)

    def fold(good: DataFrame) -> DataFrame:
        slim = good.select("key_columns", "row", "_kafka")
        return first_of(with_sequence(slim, of_entries), "sequence")

    return replace(known, fold=fold, update=differs(pipeline.columns), updates=known.inserts)
