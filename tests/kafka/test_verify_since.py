"""A daily proof on a real broker: what it asks Kafka for, what it finds, and what it builds on."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.storage.lake import Lake
from rivermouth.testing import create_topic
from rivermouth.verification import (
    Kind,
    PipelineProof,
    Since,
    beside_offsets,
    record_states,
    verify,
)
from rivermouth.verification.kafka.client import KafkaSource
from rivermouth.verification.ledger.entry import Partition
from tests.kafka.verify_world import Batch, Row, World, value

pytestmark = pytest.mark.kafka

names = (f"since-{number}" for number in itertools.count())
LAST = Since()


def rows(first: int, until: int) -> list[Row]:
    """The rows of the records that ``a_day`` writes, half of them in each partition."""
    return [(each, each, each % 2, each // 2) for each in range(first, until)]


def a_day(world: World, number: int, *, written: list[Row] | None = None) -> None:
    """A day of 20 records, and its commit; ``written`` are other rows than the right ones."""
    first, until = 20 * number, 20 * number + 20
    world.produce((each % 2, b"%d" % each, value(each, each)) for each in range(first, until))
    ranges = [(0, first // 2, until // 2), (1, first // 2, until // 2)]
    batch = Batch(ranges, rows(first, until) if written is None else written)
    batch.sequence, batch.records = number + 1, {0: 10, 1: 10}
    world.write(batch)


@pytest.fixture(params=["append", "upsert"])
def world(request: pytest.FixtureRequest, rivermouth_broker: Broker, tmp_path: Path) -> World:
    """Two days that were proved."""
    made = World(tmp_path, rivermouth_broker.bootstrap_servers, next(names), request.param)
    create_topic(made.servers, made.topic, 2)
    a_day(made, 0)
    a_day(made, 1)
    assert proved(made, None).ok
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many records Kafka gave, as ``records``."""
    counted = {"records": 0}
    original = KafkaSource.read

    def read(self: KafkaSource, ranges: Mapping[Partition, tuple[int, int]]) -> Iterator[Any]:
        for partition, messages in original(self, ranges):
            counted["records"] += len(messages)
            yield partition, messages

    monkeypatch.setattr(KafkaSource, "read", read)
    return counted


def proved(world: World, since: Since | None = LAST) -> PipelineProof:
    """A verification that records what it proves; of what came since the last, if not told."""
    proofs = beside_offsets(Lake.of(world.config))
    return verify(world.config, since=since, proofs=proofs).pipelines[0]


def on_record(world: World) -> tuple[int, int] | None:
    """The entries up to which all is proved, and was read at once."""
    known = beside_offsets(Lake.of(world.config)).read("p").proved
    return None if known is None else (known.last.sequence, known.full_entry)


def place(world: World) -> Path:
    """Where records are kept."""
    return world.offsets.parent / "proofs"


def void(world: World) -> str | None:
    """What ``status`` says of the record."""
    found = record_states(world.config)(world.config.pipelines["p"])
    assert found is not None
    return found.void


def findings(proof: PipelineProof) -> dict[Kind, int]:
    found = {kind: number for kind, number in proof.counts.items() if number}
    found.pop(Kind.OFFSETS_TABLE, None)
    return found


@pytest.mark.takes_long("upsert")
def test_a_daily_proof_asks_kafka_for_the_records_of_that_day(
    world: World, asked: dict[str, int]
) -> None:
    for number in (2, 3):
        a_day(world, number)
        asked["records"] = 0
        proof = proved(world)
        assert (proof.problems, proof.unchecked, proof.read_all) == ((), (), None)
        assert (asked["records"], proof.records, proof.entries) == (20, 20, 1)
        assert on_record(world) == (number + 1, 2)
        assert void(world) is None
    asked["records"] = 0
    assert proved(world).ok
    assert asked["records"] == 0, "nothing came since"
    assert proved(world, None).ok
    assert (asked["records"], on_record(world)) == (80, (4, 4))


@pytest.mark.takes_long("append")
def test_a_missing_row_of_that_day_is_found_and_nothing_is_built_on_the_record(
    world: World, asked: dict[str, int]
) -> None:
    a_day(world, 2, written=rows(40, 60)[1:])
    assert findings(proved(world)) == {Kind.MISSING: 1}
    assert str(void(world)).endswith("found a fault")
    asked["records"] = 0
    again = proved(world)
    assert (findings(again), asked["records"]) == ({Kind.MISSING: 1}, 60)
    assert str(again.read_all).endswith("found a fault")


@pytest.mark.thorough
def test_a_row_of_that_day_that_is_there_twice_is_found_wherever_its_file_lies(
    world: World,
) -> None:
    a_day(world, 2)
    world.commit_rows([(40, 40, 0, 20)])
    proof = proved(world)
    assert findings(proof) == {Kind.DUPLICATED: 1}
    assert proof.unchecked == (
        "whether others changed rows of entries up to 2: by WRITE at version 3",
    )


@pytest.mark.thorough
def test_a_row_of_that_day_in_an_older_file_is_found(
    rivermouth_broker: Broker, tmp_path: Path
) -> None:
    world = World(tmp_path, rivermouth_broker.bootstrap_servers, next(names))
    create_topic(world.servers, world.topic, 2)
    a_day(world, 0)
    a_day(world, 1, written=[*rows(20, 40), (40, 40, 0, 20)])  # one from the next day
    config = world.config
    whole = verify(config).pipelines[0]
    assert findings(whole) == {Kind.UNEXPECTED: 1}
    log = DeltaTable(world.table)
    entry_ms = log.history()[1]["timestamp"] + 1  # that of day 0
    a_day(world, 2)
    proof = proved(world, Since(entry_ms))
    assert findings(proof) == {Kind.DUPLICATED: 1}


@pytest.mark.thorough
def test_a_restore_makes_a_proof_void_and_then_all_is_read(
    world: World, asked: dict[str, int]
) -> None:
    DeltaTable(world.table).restore(0)
    assert void(world) == "entry 2 was rolled back since"
    asked["records"] = 0
    proof = proved(world)
    assert not proof.ok, "nobody accepted the RESTORE"
    assert "rolled back" in str(proof.read_all)
    DeltaTable(world.table).restore(1)
    assert proved(world, None).ok
    assert (void(world), on_record(world)) == (None, (2, 2))


@pytest.mark.thorough
def test_a_place_that_cannot_be_written_changes_no_verdict(world: World) -> None:
    a_day(world, 2)
    folder = place(world)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("no folder", encoding="utf-8")
    proof = proved(world)
    assert proof.ok
    assert str(proof.read_all).startswith("the recorded proof cannot be read")
    assert proof.recording is not None
    assert str(proof.recording.problem).startswith("the record cannot be written")
    assert os.path.isfile(folder)


@pytest.mark.takes_long("append")
def test_what_is_wrong_in_older_rows_is_not_seen_and_a_delete_is_named(world: World) -> None:
    DeltaTable(world.table).delete("id = 3")
    a_day(world, 2)
    proof = proved(world)
    assert (proof.ok, proof.complete) == (True, False)
    assert proof.unchecked == (
        "whether others changed rows of entries up to 2: by DELETE at version 2",
    )
    assert findings(proved(world, None)) == {Kind.MISSING: 1}


@pytest.mark.takes_long("upsert")
def test_since_a_time_covers_what_was_committed_after_it(
    world: World, asked: dict[str, int]
) -> None:
    (place(world) / "p.json").unlink()
    newest = DeltaTable(world.table).history(1)[0]["timestamp"]
    a_day(world, 2)
    asked["records"] = 0
    proof = proved(world, Since(newest + 1))
    assert (proof.problems, asked["records"], on_record(world)) == ((), 20, None)
    assert proof.reach is not None
    assert proof.reach.before is not None
    assert proof.reach.before.proved_ms is None
