"""Structured Streaming from Kafka plans micro-batches, and we commit them.

Each run starts a fresh scratch checkpoint at explicit offsets from the ledger. What Spark
notes of its own progress is never read again after the run.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rivermouth.config import Pipeline, Topics
from rivermouth.debug.failpoints import reach
from rivermouth.protocol.offsets import Position
from rivermouth.source.batches import Batches, Stop, Trigger
from rivermouth.source.beside import Beside
from rivermouth.source.checkpoint import Checkpoint
from rivermouth.spark.errors import translate
from rivermouth.spark.session import same_pool


def streaming_options(pipeline: Pipeline, starts: Position, trigger: Trigger) -> dict[str, str]:
    """What Structured Streaming needs besides: where to start, how much to take at once.

    A run that ends is not told of a minimum: Spark would end it where fewer offsets are left.
    """
    source = pipeline.source
    options = {
        **_topics(source.topics),
        "startingOffsets": json.dumps(starts.as_nested()),
        "maxOffsetsPerTrigger": str(source.max_offsets_per_trigger),
    }
    if source.min_offsets_per_trigger is not None and trigger.every_ms is not None:
        delay_ms = int(source.max_trigger_delay.total_seconds() * 1000)
        options["minOffsetsPerTrigger"] = str(source.min_offsets_per_trigger)
        options["maxTriggerDelay"] = f"{delay_ms}ms"
    return options


def _topics(topics: Topics) -> dict[str, str]:
    if not topics.assigned:
        return {"subscribe": ",".join(topics)}
    return {"assign": json.dumps({name: [*each] for name, each in topics.assigned.items()})}


class Stream:
    """One streaming query whose micro-batches are committed by ``batches``.

    While a batch that was read is being committed, Spark plans the next one, and already while it
    is being read, where the batch lets it (``was_read``). The next one does not begin before the
    commit stands. Spark's own figures of a batch may then be those of a part of it.
    """

    def __init__(self, batches: Batches, checkpoint: Checkpoint) -> None:
        self._batches = batches
        self._checkpoint = checkpoint
        self._busy = threading.Lock()
        self._stopping = False
        self._beside = Beside()

    def run(
        self,
        session: SparkSession,
        options: Mapping[str, str],
        trigger: Trigger,
        stop: Stop,
        well: Callable[[], object] = lambda: None,
    ) -> None:
        """Run until the end is reached, ``stop`` is set, or an error is raised.

        ``well`` is called once a batch was committed, or a trigger has ended without a record.
        """
        self._beside.start(same_pool(session))
        try:
            query = self._query(session, options, trigger)
            self._watch(query, stop, well)
            self._beside.settle()
        finally:
            self._beside.end()
        reach("P9")

    def _query(
        self, session: SparkSession, options: Mapping[str, str], trigger: Trigger
    ) -> StreamingQuery:
        source = session.readStream.format("kafka").options(**options).load()
        writer = source.writeStream.foreachBatch(self._on_batch)
        # Not as_uri(): Spark would take its %20 for the name of the folder.
        writer = writer.option("checkpointLocation", f"file:{self._checkpoint.path}")
        if trigger.every_ms is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{trigger.every_ms} milliseconds").start()

    def _watch(self, query: StreamingQuery, stop: Stop, well: Callable[[], object]) -> None:
        began = False
        try:
            while not (query.awaitTermination(_POLL_S) or stop.is_set() or self._beside.fault):
                if not began and self._goes_well(query):
                    began = True
                    well()
        except PySparkException as fault:
            self._beside.settle()  # what it raises says more
            raise translate(fault, self._batches.pipeline.name) from fault
        finally:
            self._end(query)

    def _goes_well(self, query: StreamingQuery) -> bool:
        # Spark's trigger may end while its batch goes on.
        without_records = query.lastProgress is not None and self._beside.at_rest
        return self._beside.done > 0 or without_records

    def _end(self, query: StreamingQuery) -> None:
        """Let a batch that has begun finish, refuse the next one, and stop the query."""
        reach("P11")
        with self._busy:
            self._stopping = True
        self._beside.end()
        query.stop()

    def _on_batch(self, raw: DataFrame, batch_id: int) -> None:
        self._beside.settle()
        if batch_id > 0:
            reach("P9")
        reach("P1")
        with self._busy:
            if self._stopping:
                return
            self._beside.begin(partial(self._batch, raw, batch_id))

    def _batch(self, raw: DataFrame, batch_id: int, was_read: Callable[[], object]) -> None:
        self._batches.batch(raw, self._checkpoint.ranges(batch_id), was_read)


_POLL_S = 1
