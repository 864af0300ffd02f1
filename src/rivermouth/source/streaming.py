"""Structured Streaming from Kafka plans micro-batches, and we commit them.

What Spark does between two batches (it notes that one has ended, asks Kafka, plans the next one)
takes longer than a small commit. So it does that while the commit is made, and while the batch is
read, too, where another full one waits.

Each run starts a fresh checkpoint, in a scratch folder, at explicit offsets from the ledger.
Nothing is ever resumed from one: so one that is lost, stale, corrupt or foreign cannot matter.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rivermouth.config import Pipeline, Topics
from rivermouth.debug import reach
from rivermouth.errors import BatchFailed
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.starts import ranges_between
from rivermouth.source.batches import Batches, Stop
from rivermouth.spark.errors import translate
from rivermouth.spark.session import same_pool

Work = Callable[[Callable[[], object]], object]
"""One batch; it is given what it may call once nobody need wait for it to be read."""


class BatchThread:
    """Does one piece of work at a time, in one thread, which keeps its connection to the JVM."""

    def __init__(self) -> None:
        self.fault: BaseException | None = None
        """What the newest piece raised. Spark would give back only its text."""
        self.done = 0
        """How many pieces have ended well."""
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._goes_on, self._idle = threading.Event(), threading.Event()
        self._idle.set()

    def start(self, prepare: Callable[[], object]) -> None:
        """Start the thread, which first calls ``prepare``; ``settle`` raises what that raises."""
        self._idle.clear()
        self._work.put(lambda was_read: prepare())
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    @property
    def at_rest(self) -> bool:
        """Whether nothing is being done, and the last piece, if there was one, has ended well."""
        return self._idle.is_set() and self.fault is None  # in this order: a fault comes before

    def begin(self, work: Work) -> None:
        """Begin with it; return once it was read or has ended. Raises what it raised till then.

        ``settle`` comes before.
        """

        def counted(was_read: Callable[[], object]) -> None:
            work(was_read)
            self.done += 1

        self._goes_on.clear()
        self._idle.clear()
        self._work.put(counted)
        self._goes_on.wait()
        if self.fault is not None:
            raise self.fault

    def settle(self) -> None:
        """Wait until the work has ended. Raises what it raised, each time."""
        self._idle.wait()
        if self.fault is not None:
            raise self.fault

    def end(self) -> None:
        """Wait until the work has ended; there will be no more."""
        self._idle.wait()
        if self._thread is not None:
            self._work.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work(self._goes_on.set)
            except BaseException as fault:  # whoever waits has to hear of it
                self.fault = fault
            self._goes_on.set()
            self._idle.set()


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint folder of one streaming query with one source."""

    path: Path

    def ranges(self, batch_id: int) -> tuple[OffsetRange, ...]:
        """The exact ranges of a micro-batch, as Spark wrote them down before it ran.

        The end is ``offsets/N``, the start ``offsets/N-1``; for batch 0 ``sources/0/0``.
        Raises BatchFailed where they cannot be read.
        """
        try:
            if batch_id == 0:
                before = _source_offsets(self.path / "sources" / "0" / "0")
            else:
                before = _logged_offsets(self.path / "offsets" / str(batch_id - 1))
            after = _logged_offsets(self.path / "offsets" / str(batch_id))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as fault:
            raise BatchFailed(
                "the checkpoint of this run cannot be read",
                where=str(self.path),
                found=repr(fault),
                remedy="Run again; let nothing clear the temporary folder during a run",
            ) from fault
        return ranges_between(before, after)


def _logged_offsets(file: Path) -> Position:
    """The offsets of the only source in an offset log file of format v1 or v2."""
    lines = file.read_text("utf-8").split("\n")
    text = lines[2]
    if lines[0] == "v2":
        text = text.split(":", 1)[1]
    elif lines[0] != "v1":
        raise ValueError(f"offset log format {lines[0]!r} is not v1 or v2")
    return Position.from_nested(json.loads(text))


def _source_offsets(file: Path) -> Position:
    """The offsets a query started from: one NUL byte, ``v1``, then JSON."""
    text = file.read_bytes().lstrip(b"\0").decode("utf-8")
    version, offsets = text.split("\n", 1)
    if version != "v1":
        raise ValueError(f"source offset format {version!r} is not v1")
    return Position.from_nested(json.loads(offsets))


def streaming_options(pipeline: Pipeline, starts: Position, *, endless: bool) -> dict[str, str]:
    """What Structured Streaming needs besides: where to start, how much to take at once.

    A run that ends is not told of a minimum: Spark would end it where fewer offsets are left.
    """
    source = pipeline.source
    options = {
        **_topics(source.topics),
        "startingOffsets": json.dumps(starts.as_nested()),
        "maxOffsetsPerTrigger": str(source.max_offsets_per_trigger),
    }
    if source.min_offsets_per_trigger is not None and endless:
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
        self._thread = BatchThread()

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

        ``trigger_ended`` is called once a batch was committed, or a trigger has ended without a
        record.
        """
        self._thread.start(same_pool(session))
        try:
            query = self._query(session, options, endless=endless)
            self._watch(query, stop, trigger_ended)
            self._thread.settle()
        finally:
            self._thread.end()
        reach("P9")

    def _query(
        self, session: SparkSession, options: Mapping[str, str], *, endless: bool
    ) -> StreamingQuery:
        source = session.readStream.format("kafka").options(**options).load()
        writer = source.writeStream.foreachBatch(self._on_batch)
        # Not as_uri(): Spark would take its %20 for the name of the folder.
        writer = writer.option("checkpointLocation", f"file:{self._checkpoint.path}")
        if not endless:
            return writer.trigger(availableNow=True).start()
        every_ms = int(self._batches.pipeline.trigger.total_seconds() * 1000)
        return writer.trigger(processingTime=f"{every_ms} milliseconds").start()

    def _watch(
        self, query: StreamingQuery, stop: Stop, trigger_ended: Callable[[], object]
    ) -> None:
        said = False
        try:
            while not (query.awaitTermination(_POLL_S) or stop.is_set() or self._thread.fault):
                if not said and self._trigger_has_ended(query):
                    said = True
                    trigger_ended()
        except PySparkException as fault:
            self._thread.settle()  # what it raises says more
            raise translate(fault, self._batches.pipeline.name) from fault
        finally:
            self._end(query)

    def _trigger_has_ended(self, query: StreamingQuery) -> bool:
        # Spark's trigger may end while its batch goes on.
        without_records = query.lastProgress is not None and self._thread.at_rest
        return self._thread.done > 0 or without_records

    def _end(self, query: StreamingQuery) -> None:
        """Let a batch that has begun finish, refuse the next one, and stop the query."""
        reach("P11")
        with self._busy:
            self._stopping = True
        self._thread.end()
        query.stop()

    def _on_batch(self, raw: DataFrame, batch_id: int) -> None:
        self._thread.settle()
        if batch_id > 0:
            reach("P9")
        reach("P1")
        with self._busy:
            if self._stopping:
                return
            ranges, commit = partial(self._checkpoint.ranges, batch_id), self._batches.batch
            self._thread.begin(lambda was_read: commit(raw, ranges(), was_read))


_POLL_S = 1
