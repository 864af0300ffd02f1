"""What Structured Streaming promises us of a batch that is read after Spark has gone on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks
from rivermouth.source.streaming import Checkpoint, Stream, streaming_options
from tests.builders import place
from tests.lake import Lake, append_pipeline, bid
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPIC = "read-late"


class ReadLate:
    """A pipeline that reads the only batch once its query has ended."""

    def __init__(self, lake: Lake, session: SparkSession) -> None:
        self._session = session
        self.pipeline = lake.configure(p=append_pipeline(TOPIC)).pipelines["p"]
        self.values: list[bytes] = []

    def batch(
        self,
        raw: DataFrame,
        ranges: Sequence[OffsetRange],
        was_read: Callable[[], object] = lambda: None,
    ) -> None:
        assert self._session.streams.active
        was_read()
        wait_for(lambda: not self._session.streams.active, "the query did not end")
        for _ in range(2):
            self.values += [bytes(row.value) for row in raw.select("value").collect()]

    def watermarks(self, position: Position) -> Mapping[TopicPartition, Watermarks]:
        raise NotImplementedError


def test_a_batch_can_be_read_and_read_again_after_its_query_has_ended(
    lake: Lake, rivermouth_spark: SparkSession, tmp_path: Path
) -> None:
    lake.topic(TOPIC, 2)
    sent = [bid(each) for each in range(10)]
    lake.produce(TOPIC, [(None, value, n % 2) for n, value in enumerate(sent)])
    batches = ReadLate(lake, rivermouth_spark)
    starts = Position({place(each, TOPIC): 0 for each in range(2)})
    options = {"kafka.bootstrap.servers": lake.servers}
    options |= streaming_options(batches.pipeline, starts, endless=False)
    stream = Stream(batches, Checkpoint(tmp_path / "checkpoint"))
    stream.run(rivermouth_spark, options, threading.Event(), endless=False)
    assert sorted(batches.values) == sorted(sent * 2)
