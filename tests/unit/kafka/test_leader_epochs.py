"""What the answers of a consumer tell of truncated logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from rivermouth.errors import KafkaUnreachable
from rivermouth.kafka.client import truncated_logs
from rivermouth.protocol.offsets import TopicPartition as Partition
from tests.builders import place

pytestmark = pytest.mark.unit

POSITIONS = {place(0): (6, 3), place(1): (4, 2)}
RESET, END = KafkaError._AUTO_OFFSET_RESET, KafkaError._PARTITION_EOF
CUT = "partition truncation detected: broker end offset is 5 (epoch 3)"


@dataclass(frozen=True)
class Failure:
    number: int
    text: str

    def code(self) -> int:
        return self.number

    def str(self) -> str:
        return self.text


@dataclass(frozen=True)
class Answer:
    """What a consumer's poll gives: of a partition, with an error or a record."""

    number: int
    failure: Failure | None = None
    of: str | None = "t"

    def topic(self) -> str | None:
        return self.of

    def partition(self) -> int:
        return self.number

    def error(self) -> Failure | None:
        return self.failure


class Reader:
    """A consumer with these answers, and none after them."""

    def __init__(self, *answers: Answer | None) -> None:
        self._answers = [*answers]
        self.assigned: list[TopicPartition] = []
        self.closed = False

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def poll(self, timeout: float) -> Answer | None:
        return self._answers.pop(0) if self._answers else None

    def close(self) -> None:
        self.closed = True


def asked(reader: Reader, timeout_s: float = 5) -> dict[Partition, int]:
    return truncated_logs(POSITIONS, lambda: cast(Consumer, reader), timeout_s)


@pytest.mark.parametrize(
    ("answer", "truncated"),
    [
        (Answer(0), {}),
        (Answer(0, Failure(END, "end of partition")), {}),
        (Answer(0, Failure(RESET, "offset out of range")), {}),
        (Answer(0, Failure(END, CUT)), {}),
        (Answer(0, Failure(RESET, CUT)), {place(0): 5}),
    ],
    ids=["a record", "the end", "an offset out of range", "another error", "a truncated log"],
)
def test_a_log_is_truncated_where_the_broker_says_so(
    answer: Answer, truncated: dict[Partition, int]
) -> None:
    reader = Reader(None, Answer(0, of=None), answer, Answer(1))
    assert asked(reader) == truncated
    assert reader.closed


def test_the_consumer_is_asked_for_each_position_in_its_epoch() -> None:
    reader = Reader(Answer(1), Answer(0))
    asked(reader)
    told = [(each.partition, each.offset, each.leader_epoch) for each in reader.assigned]
    assert told == [(0, 6, 3), (1, 4, 2)]


def test_a_partition_that_does_not_answer_in_time_is_named() -> None:
    reader = Reader(Answer(0, Failure(RESET, CUT)))
    with pytest.raises(KafkaUnreachable) as caught:
        asked(reader, timeout_s=0.05)
    assert caught.value.where == "t-1"
    assert reader.closed
