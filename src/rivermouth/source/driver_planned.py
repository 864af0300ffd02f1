"""Driver-planned batches: the driver names the offset ranges, and Spark reads exactly these.

A pipeline that has nothing to read asks Kafka alone.

For where Spark is reached through Spark Connect. Structured Streaming would run the function
given to ``foreachBatch`` in another process there, away from the ledger it has to keep. And for
pipelines with a rate for each partition, which Structured Streaming does not know, and for those
with so many partitions that it would read little of each. No checkpoint is involved: the ledger
knows where to start, Kafka where to end.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rivermouth.config import Pipeline
from rivermouth.debug import reach
from rivermouth.protocol.batches import Ends, Pace, lag, next_ranges
from rivermouth.protocol.offsets import OffsetRange, Position, nested
from rivermouth.source.batches import Batches, Stop
from rivermouth.spark.errors import translate

ASK_S = 300.0
"""Seconds without a question; servers may be set to fewer than an hour."""
_SETTING = "spark.sql.session.timeZone"  # any session tells it; the server is asked each time


class KeepAlive:
    """Waits, and asks ``session`` a small question every ``ASK_S`` seconds.

    ``clock`` tells seconds that never go back.
    """

    def __init__(self, session: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._clock = clock
        self._asked = clock()

    def wait(self, seconds: float, stop: Stop) -> bool:
        """Wait as long, or until ``stop`` is set; say whether it is.

        Raises what the session raises.
        """
        until = self._clock() + seconds
        while True:
            left = max(0.0, until - self._clock())
            if stop.wait(min(left, ASK_S)):
                return True
            if self._clock() - self._asked >= ASK_S:
                self._session.conf.get(_SETTING)
                self._asked = self._clock()
            if left <= ASK_S:
                return False


_RATE_S = 1.0
"""A rate is that of a second: in less than one, a slow partition would have no offset."""
_ASK_KAFKA_S = 0.01
"""With ``trigger: 0s`` Kafka is not asked more often than this, as by Spark's own source."""


def pace_of(pipeline: Pipeline, *, endless: bool) -> Pace:
    """How fast a pipeline is read. A run that ends waits for no minimum, but keeps to the rate."""
    source = pipeline.source
    rate = source.max_rate_per_partition
    return Pace(
        at_least=(source.min_offsets_per_trigger or 0) if endless else 0,
        delay_s=source.max_trigger_delay.total_seconds(),
        per_second=rate,
        every_s=max(pipeline.trigger.total_seconds(), _ASK_KAFKA_S if rate is None else _RATE_S),
    )


class DriverPlanned:
    """Plans batches of at most ``max_offsets_per_trigger`` offsets each, at the pipeline's pace.

    A batch takes ``least`` offsets of a partition, or all that wait there: see ``batches.share``.
    ``clock`` tells seconds that never go back. What it knows of time is in memory: after each
    opening a batch is due at once, with the offsets of one trigger.
    """

    def __init__(
        self,
        batches: Batches,
        starts: Position,
        clock: Callable[[], float] = time.monotonic,
        *,
        least: int = 1,
    ) -> None:
        self._batches = batches
        self._position = starts
        self._clock = clock
        self._least = least
        self._due_at: float | None = None

    def run(
        self,
        session: SparkSession,
        options: Mapping[str, str],
        stop: Stop,
        trigger_ended: Callable[[], object] = lambda: None,
        *,
        endless: bool,
    ) -> None:
        """Run until ``stop`` is set or an error is raised; if not ``endless``, until the end.

        ``trigger_ended`` is called each time the end was reached, or as much as the rate allows.
        """
        pace = pace_of(self._batches.pipeline, endless=endless)
        # Spark keeps consumers by their group. By default each batch has a new one, so it would
        # connect anew, and what is kept of the old ones would grow with the batches.
        group = {"kafka.group.id": f"rivermouth-{uuid.uuid4()}"}  # never joined
        read = partial(read_ranges, session, {**group, **options})
        alive = KeepAlive(session, self._clock)
        ends: Ends | None = None
        while not stop.is_set():
            now = self._clock()
            if ends is None or endless:
                ends = self._ends()
            self._drain(read, ends, pace, now, stop)
            if stop.is_set():
                break
            trigger_ended()
            if not endless and not lag(self._position, ends):
                break
            if self._wait(alive, max(0.0, now + pace.every_s - self._clock()), stop):
                break
        reach("P11")

    def _wait(self, alive: KeepAlive, seconds: float, stop: Stop) -> bool:
        try:
            return alive.wait(seconds, stop)
        except PySparkException as fault:
            raise translate(fault, self._batches.pipeline.name) from fault

    def _ends(self) -> Ends:
        """Where the topics end now. Raises the Halt that applies to the position."""
        marks = self._batches.watermarks(self._position)
        # A partition that was added since was empty then.
        self._position = Position({**dict.fromkeys(marks, 0), **self._position.offsets})
        return {each: mark.high for each, mark in marks.items()}

    def _drain(
        self,
        read: Callable[[Sequence[OffsetRange]], DataFrame],
        ends: Ends,
        pace: Pace,
        now: float,
        stop: Stop,
    ) -> None:
        """Read towards ``ends`` while batches are due, as far as the rate allows since the last
        time that one was due.
        """
        last, limit = self._due_at, self._batches.pipeline.source.max_offsets_per_trigger
        reached = pace.within(self._position, ends, 0.0 if last is None else now - last)
        while not stop.is_set():
            waited_s = math.inf if self._due_at is None else self._clock() - self._due_at
            if not pace.due(lag(self._position, ends), waited_s):
                return
            self._due_at = now
            ranges = next_ranges(self._position, reached, limit, self._least)
            if not ranges:
                return
            reach("P1")
            try:
                self._batches.batch(read(ranges), ranges)
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
