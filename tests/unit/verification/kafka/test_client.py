"""The checker's client: options, and no broker. Reading is tested with one in ``tests/kafka``."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.errors import KafkaRefused, KafkaUnreachable
from rivermouth.verification.kafka.client import KafkaSource, client_options
from tests.unit.verification.doubles import ZERO, configured

pytestmark = pytest.mark.unit


def test_no_topic_is_created_by_asking_for_it(tmp_path: Path) -> None:
    options = client_options(configured(tmp_path))
    assert options["allow.auto.create.topics"] == "false"
    assert options["bootstrap.servers"] == "127.0.0.1:1"


def test_where_no_broker_answers_every_question_says_so(tmp_path: Path) -> None:
    source = KafkaSource(client_options(configured(tmp_path)), timeout_s=0.2)
    with pytest.raises(KafkaUnreachable) as caught:
        source.identity(["t"])
    assert "127.0.0.1:1" in str(caught.value)
    with pytest.raises(KafkaUnreachable):
        source.end_offsets([ZERO])
    with pytest.raises(KafkaUnreachable, match=r"returned no record for 0\.2 s") as stuck:
        list(source.read({ZERO: (0, 5)}))
    assert "t-0 before 5" in str(stuck.value)


def test_a_range_without_an_offset_is_done_at_once(tmp_path: Path) -> None:
    source = KafkaSource(client_options(configured(tmp_path)), timeout_s=1.0)
    assert list(source.read({ZERO: (5, 5)})) == [(ZERO, [])]
    assert source.first_offsets([]) == {}


def test_an_option_that_no_client_knows_is_refused() -> None:
    with pytest.raises(KafkaRefused):
        KafkaSource({"bootstrap.servers": "127.0.0.1:1", "linger.ms": "many"})
