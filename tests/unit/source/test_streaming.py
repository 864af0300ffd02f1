"""A streaming query as far as we see it: what a batch raised is told, and that a trigger ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.errors import BatchFailed, KafkaUnreachable
from rivermouth.source.batches import Batches
from rivermouth.source.streaming import BatchThread, Checkpoint, Stream, streaming_options
from tests.builders import position
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit


class Spark:
    """Session, reader, writer and query in one. Each poll takes one of ``polls``."""

    def __init__(self, *polls: Callable[[Spark], bool]) -> None:
        self._polls = [*polls]
        self.progress: dict[str, Any] | None = None
        self.batch: Callable[[Any, int], None] = lambda raw, number: None
        self.stopped = 0

    def __getattr__(self, name: str) -> Any:
        if name in ("readStream", "writeStream", "sparkContext"):
            return self
        return lambda *given, **named: self

    def foreachBatch(self, function: Callable[[Any, int], None]) -> Spark:
        self.batch = function
        return self

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.progress

    def awaitTermination(self, seconds: float) -> bool:
        return self._polls.pop(0)(self)

    def stop(self) -> None:
        self.stopped += 1


class Feed:
    """A pipeline that is open, and whose batches fail."""

    pipeline = a_pipeline()

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def batch(self, raw: object, ranges: object, was_read: object) -> None:
        raise self._fault


class NoCheckpoint(Checkpoint):
    def ranges(self, batch_id: int) -> tuple[()]:
        return ()


class BrokenCheckpoint(Checkpoint):
    def ranges(self, batch_id: int) -> tuple[()]:
        raise BatchFailed("the checkpoint of this run cannot be read")


def run(spark: Spark, fault: Exception, well: Callable[[], object] = lambda: None) -> None:
    stream = Stream(cast(Batches, Feed(fault)), NoCheckpoint(Path("/nowhere")))
    stream.run(cast(SparkSession, spark), {}, threading.Event(), well, endless=True)


def a_batch_fails(spark: Spark) -> bool:
    try:
        spark.batch(None, 0)
    except Exception as fault:
        raise PySparkException(
            "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function"
        ) from fault
    return True


@pytest.mark.parametrize(
    "fault", [KafkaUnreachable("away"), KeyError("topic"), PySparkException("[X] y")], ids=repr
)
def test_what_a_batch_raised_is_raised_and_not_what_spark_made_of_it(fault: Exception) -> None:
    spark = Spark(a_batch_fails)
    with pytest.raises(type(fault)) as raised:
        run(spark, fault)
    assert raised.value is fault
    assert spark.stopped == 1


class Overlapping:
    """A pipeline whose batches are read at once, and end when they may. They fail by ``fault``."""

    pipeline = a_pipeline()

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault
        self.may_end = threading.Event()
        self.said: list[str] = []

    def batch(self, raw: object, ranges: object, was_read: Callable[[], object]) -> None:
        self.said.append(f"read {raw}")
        was_read()
        self.may_end.wait(10)
        if self._fault is not None:
            raise self._fault
        self.said.append(f"committed {raw}")


def overlapping(
    feed: Overlapping,
    *polls: Callable[[Spark], bool],
    well: Callable[[], object] = lambda: None,
) -> None:
    stream = Stream(cast(Batches, feed), NoCheckpoint(Path("/nowhere")))
    stream.run(cast(SparkSession, Spark(*polls)), {}, threading.Event(), well, endless=True)


def test_spark_goes_on_once_a_batch_was_read_and_the_next_begins_when_it_is_committed() -> None:
    feed = Overlapping()

    def plans_meanwhile(spark: Spark) -> bool:
        spark.batch("1", 0)
        feed.said.append("planned 2")
        feed.may_end.set()
        spark.batch("2", 1)
        return False

    overlapping(feed, plans_meanwhile, lambda _: True)
    assert feed.said == ["read 1", "planned 2", "committed 1", "read 2", "committed 2"]


@pytest.mark.parametrize("fault", [None, BatchFailed("late")])
def test_a_trigger_has_gone_well_once_its_batch_is_committed(fault: BatchFailed | None) -> None:
    """Else a batch that fails each time would be tried for ever."""
    feed, well = Overlapping(fault), list[str]()

    def ends_before_its_batch(spark: Spark) -> bool:
        spark.batch("1", 0)
        spark.progress = {"numInputRows": 2}
        return False

    def commits(spark: Spark) -> bool:
        feed.said.append("too early" if well else "not yet")
        feed.may_end.set()
        return False

    def looks(spark: Spark) -> bool:
        time.sleep(0.01)
        return bool(well)

    polls = (ends_before_its_batch, commits, *([looks] * 1_000))
    with nullcontext() if fault is None else pytest.raises(BatchFailed):
        overlapping(feed, *polls, well=lambda: well.append("well"))
    assert "not yet" in feed.said
    assert well == (["well"] if fault is None else [])


def test_nothing_is_at_rest_that_works_or_has_failed() -> None:
    beside, may_end = BatchThread(), threading.Event()
    beside.start(lambda: None)
    beside.settle()
    assert (beside.at_rest, beside.done) == (True, 0)

    def works(was_read: Callable[[], object]) -> None:
        was_read()
        may_end.wait(10)

    beside.begin(works)
    assert not beside.at_rest
    may_end.set()
    beside.settle()
    assert (beside.at_rest, beside.done) == (True, 1)

    def fails(was_read: Callable[[], object]) -> None:
        raise BatchFailed("now")

    with pytest.raises(BatchFailed):
        beside.begin(fails)
    beside.end()
    assert (beside.at_rest, beside.done) == (False, 1)


def test_what_the_checkpoint_raises_is_raised_and_not_what_spark_made_of_it() -> None:
    stream = Stream(cast(Batches, Overlapping()), BrokenCheckpoint(Path("/nowhere")))
    session = cast(SparkSession, Spark(a_batch_fails))
    with pytest.raises(BatchFailed, match="checkpoint of this run"):
        stream.run(session, {}, threading.Event(), endless=True)


@pytest.mark.parametrize("at", ["the next batch", "no plan", "a look", "the end"])
def test_what_a_batch_raises_after_it_was_read_is_raised_and_no_batch_follows(at: str) -> None:
    fault = BatchFailed("late")
    feed = Overlapping(fault)

    def fails_late(spark: Spark) -> bool:
        spark.batch("1", 0)
        feed.may_end.set()
        if at == "the next batch":
            try:
                spark.batch("2", 1)
            except BatchFailed as raised:
                raise PySparkException("[STREAM_FAILED]") from raised
        if at == "no plan":
            raise PySparkException("[STREAM_FAILED] TimeoutException: Kafka is away")
        return at == "the end"

    def looks(spark: Spark) -> bool:
        time.sleep(0.01)
        return False

    with pytest.raises(BatchFailed) as raised:
        overlapping(feed, fails_late, *([looks] * 1_000 if at == "a look" else []))
    assert raised.value is fault
    assert feed.said == ["read 1"]


def test_what_spark_itself_raised_is_told_by_its_root() -> None:
    def no_plan(spark: Spark) -> bool:
        raise PySparkException(
            "[STREAM_FAILED] Query terminated with exception: "
            "org.apache.kafka.common.errors.TimeoutException: over"
        )

    with pytest.raises(KafkaUnreachable) as raised:
        run(Spark(no_plan), BatchFailed("unused"))
    assert raised.value.found == "TimeoutException: over"


def test_the_end_of_the_first_trigger_is_said_once_even_without_a_record() -> None:
    def begins(spark: Spark) -> bool:
        return False

    def idles(spark: Spark) -> bool:
        spark.progress = {"numInputRows": 0}
        return False

    said = list[int]()
    run(Spark(begins, begins, idles, idles, lambda _: True), KeyError(), lambda: said.append(1))
    assert said == [1]


def test_only_a_run_without_end_tells_spark_of_a_minimum() -> None:
    """Where a run ends Spark would end it as soon as fewer offsets are left."""
    pipeline = a_pipeline()
    plain = {
        "subscribe": "t",
        "startingOffsets": '{"t": {"0": 4}}',
        "maxOffsetsPerTrigger": "500000",
    }
    assert streaming_options(pipeline, position(4), endless=True) == plain
    source = pipeline.source.model_copy(update={"min_offsets_per_trigger": 7})
    waits = pipeline.model_copy(update={"source": source})
    least = {"minOffsetsPerTrigger": "7", "maxTriggerDelay": "900000ms"}
    assert streaming_options(waits, position(4), endless=True) == {**plain, **least}
    assert streaming_options(waits, position(4), endless=False) == plain


def test_spark_is_told_which_partitions_are_assigned() -> None:
    pipeline = a_pipeline(assigned={"t": (0, 2), "u": (1,)})
    options = streaming_options(pipeline, position(4), endless=False)
    assert options["assign"] == '{"t": [0, 2], "u": [1]}'
    assert "subscribe" not in options
