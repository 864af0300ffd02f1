"""What a start and ``status`` ask a real broker: it is right, and quick."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from rivermouth.config import load
from rivermouth.databricks.workspace import secrets_here
from rivermouth.local.machine import heap_settings, memory_mb
from rivermouth.operate.pace import State
from rivermouth.operate.status import status
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.run.starting import memory_of
from tests.kafka.ledgers import read_up_to
from tests.lake import Lake

pytestmark = pytest.mark.kafka

NAMES = [f"status{number}" for number in range(10)]


def pipeline(*topics: str) -> dict[str, Any]:
    return {
        "source": {"topics": [*topics], "format": "json"},
        "schema": "id BIGINT",
        "target": {"table": f"s.{topics[0]}"},
    }


def test_a_run_gets_memory_by_the_partitions_that_it_reads(lake: Lake) -> None:
    lake.topic("roomy", 200)

    def memory(names: list[str], **more: object) -> Mapping[str, str]:
        text = json.loads(lake.file.read_text(encoding="utf-8"))
        lake.file.write_text(json.dumps({**text, **more}), encoding="utf-8")
        return memory_of(load(lake.file), secrets_here(), names)

    lake.configure(roomy=pipeline("roomy"))
    found = heap_settings([200], memory_mb())
    assert memory(["roomy"]) == found
    assert memory(["roomy"]) != heap_settings([], memory_mb())
    assert memory([]) == {}, "it reads nothing"
    given = memory(["roomy"], spark={"spark.driver.memory": "3g"})
    assert given == {**found, "spark.driver.memory": "3g"}
    lake.configure(roomy=pipeline("roomy", "there-is-none"))
    assert memory(["roomy"]) == heap_settings([200, 0], memory_mb())
    away = memory(["roomy"], kafka={"bootstrap.servers": "127.0.0.1:1"})
    assert away == heap_settings(None, memory_mb()), "Kafka does not tell"


@pytest.mark.thorough
def test_ten_pipelines_are_looked_at_in_under_a_second(lake: Lake) -> None:
    config = lake.configure(**{name: pipeline(name) for name in NAMES})
    for number, name in enumerate(NAMES):
        lake.topic(name, 2)
        lake.produce(name, [(None, b"{}", 0)] * (3 + number))
        read_up_to(config, name, Position({TopicPartition(name, 0): 3}))

    took = list[float]()
    for _ in range(3):  # the best of them: a busy machine makes any one slow
        began = time.monotonic()
        found = status(config).pipelines
        took.append(time.monotonic() - began)

    assert [each.lag_messages for each in found] == [*range(10)]
    assert {each.state for each in found} == {State.OK}, "what waits came just now"
    assert min(took) < 1
