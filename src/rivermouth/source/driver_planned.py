"""Driver-planned batches: the driver names the offset ranges, and Spark reads exactly these.

For where Spark is reached through Spark Connect. Structured Streaming would run the function
given to ``foreachBatch`` in another process there, away from the ledger it has to keep. No
checkpoint is involved: the ledger knows where to start, Kafka where to end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rivermouth.debug.failpoints import reach
from rivermouth.protocol.offsets import OffsetRange, Position, nested
from rivermouth.protocol.rate_limit import next_ranges
from rivermouth.source.batches import Batches, Stop, Trigger
from rivermouth.spark.errors import translate


class DriverPlanned:
    """Plans batches of at most ``max_offsets_per_trigger`` offsets each."""

    def __init__(self, batches: Batches, starts: Position) -> None:
        self._batches = batches
        self._position = starts

    def run(
        self,
        session: SparkSession,
        options: Mapping[str, str],
        trigger: Trigger,
        stop: Stop,
        well: Callable[[], object] = lambda: None,
    ) -> None:
        """Run until the end is reached, ``stop`` is set, or an error is raised.

        ``well`` is called each time the end was reached.
        """
        while not stop.is_set():
            self._drain(session, options, stop)
            well()
            if trigger.every_ms is None or stop.wait(trigger.every_ms / 1000):
                break
        reach("P11")

    def _drain(self, session: SparkSession, options: Mapping[str, str], stop: Stop) -> None:
        """Read up to where the topics end now. Raises the Halt that applies to the position."""
        marks = self._batches.watermarks(self._position)
        limit = self._batches.pipeline.source.max_offsets_per_trigger
        # A partition that was added since was empty then.
        self._position = Position({**dict.fromkeys(marks, 0), **self._position.offsets})
        ends = {each: mark.high for each, mark in marks.items()}
        while not stop.is_set():
            ranges = next_ranges(self._position, ends, limit)
            if not ranges:
                return
            reach("P1")
            try:
                self._batches.batch(read_ranges(session, options, ranges), ranges)
            except PySparkException as fault:
                raise translate(fault, self._batches.pipeline.name) from fault
            self._position = self._position.advance(ranges)
            reach("P9")


def read_ranges(
    session: SparkSession, options: Mapping[str, str], ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Exactly the records of ``ranges`` that a ``read_committed`` reader sees, as Kafka rows.

    Reads them anew each time it is evaluated. ``options`` are those of ``options.reader_options``;
    where to start and which partitions to read is said here.
    """
    starts = {each.topic_partition: each.from_offset for each in ranges}
    ends = {each.topic_partition: each.until_offset for each in ranges}
    assigned: dict[str, list[int]] = {}
    for each in ranges:
        assigned.setdefault(each.topic, []).append(each.partition)
    reader = session.read.format("kafka").options(**options)
    return reader.options(
        assign=json.dumps(assigned),
        startingOffsets=json.dumps(nested(starts)),
        endingOffsets=json.dumps(nested(ends)),
    ).load()
