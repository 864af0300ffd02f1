"""The checker on a small table written by hand: what Kafka no longer has, where it began."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.local.broker import Broker
from rivermouth.testing import create_topic
from tests.faults.checker.check import check
from tests.faults.checker.evidence import Evidence, Watched
from tests.faults.checker.scene import Scene
from tests.faults.checker.verdict import Fault
from tests.kafka.verify_world import Batch, World

pytestmark = pytest.mark.kafka


@pytest.fixture
def small(rivermouth_broker: Broker, tmp_path: Path) -> World:
    """A table written by hand: ten records in two entries, into one partition."""
    world = World(tmp_path, rivermouth_broker.bootstrap_servers, f"checker-{tmp_path.name}")
    create_topic(world.servers, world.topic)
    world.produce((0, None, b'{"id":%d,"n":0}' % number) for number in range(10))
    rows = [(number, 0, 0, number) for number in range(10)]
    world.write(Batch([(0, 0, 4)], rows[:4], sequence=1))
    world.write(Batch([(0, 4, 10)], rows[4:], sequence=2))
    return world


def by_hand(world: World) -> Evidence:
    """What there is to check of a table written by hand."""
    columns = (("id", "BIGINT"), ("n", "BIGINT"))
    pipeline = Watched("p", (world.topic,), world.table, world.quarantine, columns)
    return Evidence(world.servers, world.folder / "lake", (pipeline,))


def test_what_kafka_has_deleted_is_counted_as_unchecked(small: World) -> None:
    verdict = check(by_hand(small))
    assert (verdict.ok, verdict.records, verdict.unchecked) == (True, 10, 0), str(verdict)
    small.delete_before(0, 3)
    verdict = check(by_hand(small))
    assert verdict.ok, str(verdict)
    assert (verdict.records, verdict.unchecked) == (7, 4), "three rows and a range"


def test_a_recorded_loss_leaves_no_rows_and_any_other_loss_is_found(small: World) -> None:
    scene = Scene(small.folder, by_hand(small))
    lost = [[small.topic, 0, 0, 4]]
    for row in scene.rows(small.table):
        if row["id"] < 4:
            scene.drop_row(small.table, row)
    assert check(scene.evidence).faults == {Fault.LOST, Fault.CONSERVATION}
    small.delete_before(0, 4)
    scene.edit_entry(scene.append, 0, lambda entry: entry.update(lost=lost, rows=[[0, 0]]))
    verdict = check(scene.evidence)
    assert verdict.faults == {Fault.PROJECTION}, "which still says that four were applied"
    assert verdict.unchecked == 0


@pytest.mark.parametrize(("earliest", "faults"), [(True, {Fault.LOST_RANGE}), (False, set())])
def test_a_partition_is_read_from_its_first_offset_unless_configured_otherwise(
    earliest: bool, faults: set[Fault], small: World
) -> None:
    scene = Scene(small.folder, by_hand(small))
    later = [[small.topic, 0, 2, 4]]
    scene.edit_entry(scene.append, 0, lambda entry: entry.update(ranges=later))
    pipeline = replace(scene.append, earliest=earliest)
    verdict = check(replace(scene.evidence, pipelines=(pipeline,)))
    assert verdict.faults == {Fault.PHANTOM, Fault.PROJECTION} | faults, str(verdict)


def test_an_entry_that_leads_beyond_the_end_of_kafka_is_found(small: World) -> None:
    scene = Scene(small.folder, by_hand(small))
    beyond = {"ranges": [[small.topic, 0, 4, 20]], "position": {small.topic: {"0": 20}}}
    scene.edit_entry(scene.append, 1, lambda entry: entry.update(beyond))
    assert check(scene.evidence).faults == {Fault.LEDGER, Fault.PROJECTION}


def test_entries_that_are_known_to_nobody_any_more_are_found(small: World) -> None:
    scene = Scene(small.folder, by_hand(small))
    scene.add_commit(small.table, {"commitInfo": {"operation": "SET TBLPROPERTIES"}})
    DeltaTable(str(small.table)).create_checkpoint()
    for version in range(2):
        scene.remove_commit(small.table, version)
    assert check(scene.evidence).ok, "the offsets table still tells"
    shutil.rmtree(small.offsets)
    assert check(scene.evidence).faults == {Fault.LEDGER, Fault.PHANTOM}
