"""What a worker of Spark has loaded is spared the garbage collector, as its first task ends."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.formats.arrow import spare_what_is_loaded, without_collector
from rivermouth.storage.store import Store
from rivermouth.write.files.bad_records import QuarantineTarget
from rivermouth.write.files.data_files import Folder
from rivermouth.write.files.writing import Writing

pytestmark = pytest.mark.unit

Task = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


def writing(folder: Path) -> Task:
    into = Folder(Store.of_folder(folder), [], tight=False)
    return Writing(into, QuarantineTarget(into, "c", "p", 1, {}))


@pytest.fixture
def not_spared() -> Iterator[None]:
    gc.unfreeze()
    spare_what_is_loaded.cache_clear()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("not_spared")
def test_a_task_spares_what_is_loaded_and_only_the_first_one(tmp_path: Path) -> None:
    run = writing(tmp_path)
    assert gc.get_freeze_count() == 0
    assert list(run(iter([]))) == []
    spared = gc.get_freeze_count()
    assert spared > 0
    more = [[each] for each in range(1000)]
    assert list(run(iter([]))) == []
    assert gc.get_freeze_count() <= spared < spared + len(more)


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_before_after_a_block_without_it(on: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with suppress(ValueError), without_collector():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is on
    finally:
        (gc.enable if before else gc.disable)()
