"""Any half-open ranges of a topic give exactly the rows that Python expects, each time."""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as NativeTopicPartition
from pyspark.sql import DataFrame, SparkSession

import rivermouth
from rivermouth import OffsetRange, TopicPartition
from rivermouth.config import Config
from rivermouth.replay.readable import ReadableRange
from tests.kafka.topics import add_partitions
from tests.lake import Lake, append_pipeline, bid
from tests.waiting import wait_for_markers

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

Row = tuple[int, int, int]
"""Partition, offset, and the auction of a bid: each bid has one of its own."""


@dataclass
class Filled:
    """A topic, and each record in it that may be read, as the broker acknowledged it."""

    lake: Lake
    topic: str
    dice: random.Random
    partitions: int
    rows: set[Row] = field(default_factory=set)
    made: int = 0
    aborted: int = 0

    def fill(self, times: int) -> None:
        """Records outside of transactions, in some that are committed, and in some that are not."""
        options = {"bootstrap.servers": self.lake.servers}
        in_transactions = {**options, "transactional.id": self.topic}
        plain, transactional = Producer(options), Producer(in_transactions)
        transactional.init_transactions()
        for each in range(3 * times):
            if each % 3 == 0:
                self.rows |= self._send(plain)
                continue
            transactional.begin_transaction()
            sent = self._send(transactional)
            if each % 3 == 1:
                transactional.commit_transaction()
                self.rows |= sent
            else:
                transactional.abort_transaction()
                self.aborted += len(sent)
        wait_for_markers(in_transactions)

    def _send(self, producer: Producer) -> set[Row]:
        """A few records into any partitions, and where they are."""
        sent: set[Row] = set()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            sent.add((partition, offset, auctions[message.value() or b""]))

        first, self.made = self.made, self.made + self.dice.randint(1, 6)
        auctions = {bid(each): each for each in range(first, self.made)}
        for value in auctions:
            partition = self.dice.randrange(self.partitions)
            producer.produce(self.topic, value, partition=partition, on_delivery=on_delivery)
        producer.flush()
        assert len(sent) == len(auctions)
        return sent

    def ends(self) -> list[int]:
        """The end of each partition."""
        options = {"bootstrap.servers": self.lake.servers, "group.id": "ends"}
        with closing(Consumer(options)) as reader:
            places = [NativeTopicPartition(self.topic, each) for each in range(self.partitions)]
            return [reader.get_watermark_offsets(each, 30)[1] for each in places]

    def drawn(self) -> list[OffsetRange]:
        """Up to two ranges of each partition in any order: some are empty, some touch."""
        ranges = []
        for partition, end in enumerate(self.ends()):
            cuts = sorted(self.dice.choices(range(end + 1), k=2 * self.dice.randint(0, 2)))
            place = TopicPartition(self.topic, partition)
            ranges += [
                OffsetRange(place, *each) for each in zip(cuts[::2], cuts[1::2], strict=True)
            ]
        self.dice.shuffle(ranges)
        return ranges

    def within(self, each: OffsetRange) -> list[Row]:
        """The rows of a range, in order."""
        return sorted(
            row
            for row in self.rows
            if row[0] == each.partition and each.from_offset <= row[1] < each.until_offset
        )


@dataclass(frozen=True)
class Asked:
    """Ranges, what they are to give, and the DataFrame that was made of them once."""

    ranges: list[OffsetRange]
    wanted: list[Row]
    frame: DataFrame
    decoded: bool

    def check(self) -> None:
        """Evaluate it: exactly these rows, and none of them twice."""
        if self.decoded:
            rows = self.frame.select("_kafka.partition", "_kafka.offset", "row.auction").collect()
            found = [(each["partition"], each["offset"], each["auction"]) for each in rows]
        else:
            raw = self.frame.select("partition", "offset", "value").collect()
            found = [(p, offset, json.loads(bytes(value))["auction"]) for p, offset, value in raw]
        assert sorted(found) == self.wanted, self.ranges


def ask(spark: SparkSession, config: Config, filled: Filled) -> Asked:
    """Draw ranges, and ask for them."""
    ranges = filled.drawn()
    wanted = sorted(row for each in ranges for row in filled.within(each))
    decoded = filled.dice.random() < 0.5
    frame = rivermouth.read(spark, config, ranges, "p" if decoded else None)
    return Asked(ranges, wanted, frame, decoded)


def check_counts(config: Config, filled: Filled, ranges: list[OffsetRange]) -> None:
    """What is told of ranges without Spark: how many records, the first and the last one."""
    for readable, each in zip(rivermouth.readable(config, ranges), ranges, strict=True):
        rows = filled.within(each)
        first, last = (rows[0][1], rows[-1][1]) if rows else (None, None)
        assert readable == ReadableRange(each, len(rows), first, last)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [10, 100])
def test_any_ranges_give_exactly_their_rows_also_after_partitions_were_added(
    lake: Lake, rivermouth_spark: SparkSession, count: int
) -> None:
    topic = f"any-ranges-{count}"
    lake.topic(topic, 2)
    config = lake.configure(p=append_pipeline(topic))
    filled = Filled(lake, topic, random.Random(2026), 2)
    filled.fill(4)
    asked = [ask(rivermouth_spark, config, filled) for _ in range(count // 2)]
    for each in asked:
        each.check()
    check_counts(config, filled, asked[-1].ranges)
    add_partitions(lake.servers, topic, 4)
    filled.partitions = 4
    filled.fill(4)
    later = [ask(rivermouth_spark, config, filled) for _ in range(count // 2)]
    for each in (*asked, *later, *later):
        each.check()
    check_counts(config, filled, later[-1].ranges)

    assert filled.aborted > 0
    spans = sum(one.span for each in later for one in each.ranges)
    assert spans > sum(len(each.wanted) for each in later) > 0, "no offset without a row was asked"
    assert {each.partition for one in later for each in one.ranges} == {0, 1, 2, 3}
