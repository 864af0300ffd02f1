"""What the client tells of topics and of their retention; its answers are set by the test."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from rivermouth.errors import KafkaRefused, SourceError
from rivermouth.kafka.client import Kafka, retention_of
from rivermouth.protocol.kafka_facts import Retention

pytestmark = pytest.mark.unit

GONE, FORBIDDEN = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED
HERE = SimpleNamespace(topic_id="T", partitions=[SimpleNamespace(id=0)])


class Answered:
    """A client whose broker answers for each topic with an error code, or that it is there."""

    def __init__(self, codes: Mapping[str, int | None]) -> None:
        self._codes = codes

    def poll(self, timeout: float) -> None:
        """Nothing is reported."""

    def describe_topics(self, *_: object, **__: object) -> dict[str, Future[Any]]:
        return {topic: _future(HERE, code) for topic, code in self._codes.items()}

    def describe_cluster(self, **_: object) -> Future[Any]:
        return _future(SimpleNamespace(cluster_id="K"), None)


def _future(answer: object, code: int | None) -> Future[Any]:
    future = Future[Any]()
    if code is None:
        future.set_result(answer)
    else:
        future.set_exception(KafkaException(KafkaError(code)))
    return future


def asking(codes: Mapping[str, int | None]) -> Kafka:
    kafka = Kafka({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=0.1)
    kafka._admin = cast(AdminClient, Answered(codes))
    return kafka


def test_topics_that_are_there_are_told_with_their_ids() -> None:
    assert asking({"a": None, "b": None}).identities(["a", "b"]) == ("K", {"a": "T", "b": "T"})


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({"a": GONE, "b": None}, "RM302 127.0.0.1:1: topic a does not exist. Create the topic or"),
        (
            {"a": GONE, "b": None, "c": GONE, "d": GONE},
            "RM302 127.0.0.1:1: topics a, c, d do not exist. Create the topics or",
        ),
        ({"a": GONE, "b": FORBIDDEN, "c": GONE}, "RM303 127.0.0.1:1 b: the broker refused"),
    ],
)
def test_all_topics_that_do_not_exist_are_named_in_one_error(
    codes: Mapping[str, int | None], said: str
) -> None:
    with pytest.raises(SourceError) as refused:
        asking(codes).identities([*codes])
    assert str(refused.value).startswith(said)


def test_which_topics_are_missing_is_told_without_an_error() -> None:
    assert asking({"a": GONE, "b": None, "c": GONE}).missing("abc") == {"a", "c"}


def settings(policy: str, age: str, size: str | None) -> Mapping[str, SimpleNamespace]:
    names = ("cleanup.policy", "retention.ms", "retention.bytes")
    texts = zip(names, (policy, age, size), strict=True)
    return {name: SimpleNamespace(value=text) for name, text in texts}


@pytest.mark.parametrize(
    ("found", "retention"),
    [
        (settings("delete", "604800000", "-1"), Retention("delete", 604_800_000, None)),
        (settings("compact, delete", "-1", "5"), Retention("compact,delete", None, 5)),
        (settings("compact", "9223372036854775807", "0"), Retention("compact", 2**63 - 1, 0)),
    ],
)
def test_minus_one_is_no_limit(found: Mapping[str, SimpleNamespace], retention: Retention) -> None:
    assert retention_of(found, "k:1", "t") == retention


@pytest.mark.parametrize("found", [settings("delete", "1", None), {}])
def test_a_setting_that_is_not_told_is_named(found: Mapping[str, SimpleNamespace]) -> None:
    with pytest.raises(KafkaRefused, match=r"RM303 k:1 t: the broker does not tell [a-z.]+\."):
        retention_of(found, "k:1", "t")
