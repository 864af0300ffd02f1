"""The ledger heartbeat: an old entry is written again, and the offsets table has it then."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.protocol.commits import Recorded
from rivermouth.run.ingest import Ingest
from rivermouth.storage.store import Store
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.warehouse.ports import OffsetsTable
from tests.builders import PIPELINE, place, span
from tests.doubles import Crash, Heard, World, edges, until_done

pytestmark = pytest.mark.unit

DAY = 86400.0
HERE = (span(6, 6), span(4, 4, 1))


class Start:
    """Starts of a pipeline over a world, with the offsets table of a folder or of a catalog."""

    def __init__(self, world: World, folder: Path) -> None:
        crash = Crash()
        self._world = world
        in_folder = LakeOffsets(Store.of_folder(folder))
        self._offsets: OffsetsTable = world.offsets if world.catalog else in_folder
        self._edges = edges(world, crash, Heard(crash), self._offsets)

    def __call__(self) -> int:
        """Open the pipeline; return the sequence that it then stands at."""
        ingest = Ingest(self._edges)
        ingest.open()
        return self._world.newest.sequence

    def known(self) -> Recorded | None:
        return self._offsets.newest(PIPELINE)


@pytest.fixture
def world() -> World:
    """Entries 1 (newly discovered partitions) and 2; all read."""
    world = World(ends={place(0): 6, place(1): 4})
    until_done(world)
    world.projected.clear()
    world.offsets.txns.clear()
    return world


@pytest.fixture
def start(either_place: None, world: World, tmp_path: Path) -> Start:
    return Start(world, tmp_path / "offsets")


def clean_up(world: World) -> None:
    world.did("OPTIMIZE")
    world.log.first_version = len(world.commits) - 1


def test_an_entry_written_again_is_in_the_offsets_table_when_clean_up_takes_it(
    world: World, start: Start
) -> None:
    assert start() == 2
    world.now = 11 * DAY
    assert start() == 3
    assert world.newest.ranges == HERE
    assert world.newest.rows is not None
    known = start.known()
    assert known is not None
    assert (known.entry.sequence, known.entry.position) == (3, world.newest.position)
    clean_up(world)
    assert start() == 4, "recovered, and written again at once"
    assert world.newest.ranges == HERE
    clean_up(world)
    assert start() == 5
