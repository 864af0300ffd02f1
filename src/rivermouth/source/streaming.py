"""Structured Streaming from Kafka plans micro-batches, and we commit them.

Each run starts a fresh scratch checkpoint at explicit offsets from the ledger. What Spark
notes of its own progress is never read again after the run.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rivermouth.config import Pipeline, Topics
from rivermouth.debug.failpoints import reach
from rivermouth.protocol.offsets import Position
from rivermouth.source.batches import Batches, Stop, Trigger
from rivermouth.source.checkpoint import Checkpoint
from rivermouth.spark.errors import translate


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
    """One streaming query whose micro-batches are committed by ``batches``."""

    def __init__(self, batches: Batches, checkpoint: Checkpoint) -> None:
        self._batches = batches
        self._checkpoint = checkpoint
        self._busy = threading.Lock()
        self._stopping = False
        self._fault: Exception | None = None

    def run(
        self,
        session: SparkSession,
        options: Mapping[str, str],
        trigger: Trigger,
        stop: Stop,
        well: Callable[[], object] = lambda: None,
    ) -> None:
        """Run until the end is reached, ``stop`` is set, or an error is raised.

        ``well`` is called when the first trigger has come to its end, with records or without.
        """
        source = session.readStream.format("kafka").options(**options).load()
        writer = source.writeStream.foreachBatch(self._on_batch)
        # Not as_uri(): Spark would take its %20 for the name of the folder.
        writer = writer.option("checkpointLocation", f"file:{self._checkpoint.path}")
        if trigger.every_ms is None:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=f"{trigger.every_ms} milliseconds").start()
        began = False
        try:
            while not query.awaitTermination(_POLL_S) and not stop.is_set():
                if not began and query.lastProgress is not None:
                    began = True
                    well()
        except PySparkException as fault:
            raise self._fault or translate(fault, self._batches.pipeline.name) from fault
        finally:
            self._end(query)
        if self._fault is not None:  # of the batch that was to finish
            raise self._fault
        reach("P9")

    def _end(self, query: StreamingQuery) -> None:
        """Let a batch that has begun finish, refuse the next one, and stop the query."""
        reach("P11")
        with self._busy:
            self._stopping = True
        query.stop()

    def _on_batch(self, raw: DataFrame, batch_id: int) -> None:
        if batch_id > 0:
            reach("P9")
        reach("P1")
        with self._busy:
            if self._stopping:
                return
            try:
                self._batches.batch(raw, self._checkpoint.ranges(batch_id))
            except Exception as fault:
                # Through the JVM only its text would come back.
                self._fault = fault
                raise


_POLL_S = 1
