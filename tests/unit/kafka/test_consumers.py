"""What the answers of a consumer tell of truncated logs, and of first records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from rivermouth.errors import KafkaUnreachable
from rivermouth.kafka.consumers import first_timestamps, truncated_logs
from rivermouth.protocol.offsets import TopicPartition as Partition
from tests.builders import place

pytestmark = pytest.mark.unit

END, RESET = KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET
FORBIDDEN = KafkaError.TOPIC_AUTHORIZATION_FAILED
CUT = "partition truncation detected: broker end offset is 5 (epoch 3)"


@dataclass(frozen=True)
class Answer:
    """What a consumer's poll gives: of a partition, with a timestamp or an error."""

    number: int
    stamp: int = -1
    failure: KafkaError | None = None
    of: str | None = "t"

    def topic(self) -> str | None:
        return self.of

    def partition(self) -> int:
        return self.number

    def error(self) -> KafkaError | None:
        return self.failure

    def timestamp(self) -> tuple[int, int]:
        return 1, self.stamp


def failed(code: int, text: str = "", number: int = 0) -> Answer:
    return Answer(number, failure=KafkaError(code, text) if text else KafkaError(code))


class Reader:
    """A consumer with these answers, and none after them."""

    def __init__(self, *answers: Answer | None) -> None:
        self._answers = [*answers]
        self.assigned: list[list[tuple[int, int, int]]] = []
        self.dropped: list[int] = []
        self.closed = False

    def assign(self, partitions: list[TopicPartition]) -> None:
        places = ((each.partition, each.offset, each.leader_epoch or 0) for each in partitions)
        self.assigned.append(sorted(places))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.dropped += [each.partition for each in partitions]

    def poll(self, timeout: float) -> Answer | None:
        return self._answers.pop(0) if self._answers else None

    def close(self) -> None:
        self.closed = True


def truncated(reader: Reader, timeout_s: float = 5) -> dict[Partition, int]:
    positions = {place(0): (6, 3), place(1): (4, 2)}
    try:
        return truncated_logs(lambda _: cast(Consumer, reader), positions, timeout_s)
    finally:
        assert reader.closed


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(0), {}),
        (failed(END, "end of partition"), {}),
        (failed(RESET, "offset out of range"), {}),
        (failed(END, CUT), {}),
        (failed(RESET, CUT), {place(0): 5}),
    ],
    ids=["a record", "the end", "an offset out of range", "another error", "a truncated log"],
)
def test_a_log_is_truncated_where_the_broker_says_so(
    answer: Answer, expected: dict[Partition, int]
) -> None:
    assert truncated(Reader(None, Answer(0, of=None), answer, Answer(1))) == expected


def test_the_consumer_is_asked_for_each_position_in_its_epoch() -> None:
    reader = Reader(Answer(1), Answer(0))
    truncated(reader)
    assert reader.assigned == [[(0, 6, 3), (1, 4, 2)]]


def test_a_partition_that_does_not_answer_in_time_is_named() -> None:
    with pytest.raises(KafkaUnreachable) as caught:
        truncated(Reader(failed(RESET, CUT)), timeout_s=0.05)
    assert caught.value.where == "t-1"


def found(
    reader: Reader, *wanted: tuple[int, int], timeout_s: float = 5
) -> dict[tuple[int, int], int | None]:
    places = [(place(partition), offset) for partition, offset in wanted]
    try:
        answer = first_timestamps(lambda _: cast(Consumer, reader), places, timeout_s)
    finally:
        assert reader.closed
    return {(each.partition, offset): stamp for (each, offset), stamp in answer.items()}


def test_the_first_record_of_each_partition_is_taken_and_no_other() -> None:
    reader = Reader(None, Answer(0, 10), Answer(0, 11), Answer(1, 20))
    assert found(reader, (0, 5), (1, 7)) == {(0, 5): 10, (1, 7): 20}
    assert [each[:2] for each in reader.assigned[0]] == [(0, 5), (1, 7)]
    assert reader.dropped == [0, 1], "so that no more of them is read"


def test_several_offsets_of_a_partition_are_read_one_after_the_other() -> None:
    reader = Reader(Answer(0, 10), Answer(1, 20), Answer(0, 12))
    assert found(reader, (0, 7), (1, 7), (0, 5)) == {(0, 5): 10, (1, 7): 20, (0, 7): 12}
    rounds = [[each[:2] for each in assigned] for assigned in reader.assigned]
    assert rounds == [[(0, 5), (1, 7)], [(0, 7)]]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(0, 10), {(0, 5): 10}),
        (Answer(0, -1), {(0, 5): -1}),
        (failed(END), {(0, 5): None}),
        (failed(RESET), {}),
    ],
    ids=["a record", "a record without a timestamp", "the end", "deleted meanwhile"],
)
def test_what_an_answer_means(answer: Answer, expected: dict[tuple[int, int], int | None]) -> None:
    assert found(Reader(answer), (0, 5)) == expected


def test_what_does_not_answer_in_time_is_left_out() -> None:
    reader = Reader(Answer(1, 20), Answer(0, failure=KafkaError(FORBIDDEN), of=None))
    assert found(reader, (0, 5), (1, 7), (1, 9), timeout_s=0.01) == {(1, 7): 20}


def test_an_error_of_a_partition_is_raised() -> None:
    with pytest.raises(KafkaException):
        found(Reader(failed(FORBIDDEN)), (0, 5))
