"""Ten pipelines against a real broker: the status is right, and quick."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import load
from rivermouth.databricks.workspace import secrets_here
from rivermouth.kafka.client import Kafka
from rivermouth.local.broker import Broker
from rivermouth.local.machine import heap_settings, memory_mb
from rivermouth.operate.status import State, status
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.run.starting import memory_of
from rivermouth.testing import create_topic, produce

pytestmark = pytest.mark.kafka

NAMES = [f"status{number}" for number in range(10)]


def test_a_run_gets_memory_by_the_partitions_that_it_reads(
    rivermouth_broker: Broker, tmp_path: Path
) -> None:
    servers = rivermouth_broker.bootstrap_servers
    create_topic(servers, "roomy", 200)
    text: dict[str, Any] = {
        "version": 1,
        "kafka": {"bootstrap.servers": servers},
        "warehouse": "./lake",
        "pipelines": {
            "roomy": {
                "source": {"topics": ["roomy"], "format": "json"},
                "schema": "id BIGINT",
                "target": {"table": "s.roomy"},
            }
        },
    }

    def memory(names: list[str], **more: object) -> Mapping[str, str]:
        file = tmp_path / "rivermouth.yml"
        file.write_text(json.dumps({**text, **more}), encoding="utf-8")
        return memory_of(load(file), secrets_here(), names)

    found = heap_settings([200], memory_mb())
    assert memory(["roomy"]) == found
    assert memory(["roomy"]) != heap_settings([], memory_mb())
    assert memory([]) == {}, "it reads nothing"
    given = memory(["roomy"], spark={"spark.driver.memory": "3g"})
    assert given == {**found, "spark.driver.memory": "3g"}
    text["pipelines"]["roomy"]["source"]["topics"] = ["roomy", "there-is-none"]
    assert memory(["roomy"]) == heap_settings([200, 0], memory_mb())
    away = memory(["roomy"], kafka={"bootstrap.servers": "127.0.0.1:1"})
    assert away == heap_settings(None, memory_mb()), "Kafka does not tell"


@pytest.mark.thorough
def test_ten_pipelines_are_looked_at_in_under_a_second(
    rivermouth_broker: Broker, tmp_path: Path
) -> None:
    servers = rivermouth_broker.bootstrap_servers
    for number, name in enumerate(NAMES):
        create_topic(servers, name, 2)
        produce(servers, name, [(None, b"{}", 0)] * (3 + number))
    pipelines = {
        name: {
            "source": {"topics": [name], "format": "json"},
            "schema": "id BIGINT",
            "target": {"table": f"s.{name}"},
        }
        for name in NAMES
    }
    text = {
        "version": 1,
        "kafka": {"bootstrap.servers": servers},
        "warehouse": "./lake",
        "pipelines": pipelines,
    }
    file = tmp_path / "rivermouth.yml"
    file.write_text(json.dumps(text), encoding="utf-8")
    config = load(file)
    facts = Kafka({"bootstrap.servers": servers}).facts(NAMES)
    for name in NAMES:
        place, path = TopicPartition(name, 0), config.folder / "s" / name
        rows = pa.table({"id": pa.array([1], pa.int64())})
        write_deltalake(str(path), rows.slice(0, 0))
        entry = Entry(
            pipeline=name,
            sequence=1,
            commit=name,
            cluster=facts.cluster,
            table=str(DeltaTable(str(path)).metadata().id),
            topics={name: facts.topics[name]},
            ranges=(OffsetRange(place, 0, 3),),
            position=Position({place: 3}),
            base=0,
            config=config.pipelines[name].identity,
        )
        properties = CommitProperties(
            app_transactions=[Transaction(app_id(name), 1)],
            custom_metadata={"userMetadata": to_json(entry)},
        )
        write_deltalake(str(path), rows, mode="append", commit_properties=properties)

    took = list[float]()
    for _ in range(3):  # the best of them: a busy machine makes any one slow
        began = time.monotonic()
        found = status(config).pipelines
        took.append(time.monotonic() - began)

    assert [each.lag_messages for each in found] == [*range(10)]
    assert [each.state for each in found] == [State.OK, *[State.BEHIND] * 9]
    assert min(took) < 1
