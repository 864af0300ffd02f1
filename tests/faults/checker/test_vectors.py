"""The checker on tables of which deletion vectors delete rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from pyroaring import BitMap64

from rivermouth.warehouse.delta.vectors import vector_file
from tests.faults.checker import check as checking
from tests.faults.checker.check import check
from tests.faults.checker.data_files import DataFile
from tests.faults.checker.log import Log
from tests.faults.checker.reader import SnapshotLog, SnapshotReader
from tests.faults.checker.scene import Facts, Scene
from tests.faults.checker.verdict import Fault
from tests.faults.small_lake import Small
from tests.reading import rows_at

pytestmark = pytest.mark.unit

PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}


@pytest.fixture(params=[(), ("id",)], ids=["append", "upsert"])
def small(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A table with six rows, of which 2 and 4 are marked as deleted; that is accepted."""
    made = Small(tmp_path, request.param)
    monkeypatch.setattr(checking, "Cluster", lambda servers: made.broker)
    made.broker.add(*((n, 0) for n in range(6)))
    made.batch([(n, 0, 0, n) for n in range(6)], (0, 0, 6))
    version = marked(made, {2, 4})
    made.stay(deletes=[{"version": version, "rows": {"t": {"0": [2, 1, 1, 1]}}}])
    return made


def marked(small: Small, ids: Collection[int], *, changes: bool = True) -> int:
    """Somebody marks the rows of these ids as deleted, beside those that are; the version."""
    actions: list[Facts] = [{"protocol": PROTOCOL}]
    for file in newest(small):
        whole = DataFile(file.path).rows(small.table)
        left = {row["id"] for row in file.rows(small.table)} - {*ids}
        gone = BitMap64(n for n, row in enumerate(whole) if row["id"] not in left)
        content, [vector] = vector_file(uuid4(), [gone])
        (small.table / str(vector.file)).write_bytes(content)
        before, after = action(small, file, changes), action(small, file, changes)
        after["deletionVector"] = vector.as_dict()
        actions += [{"remove": before}, {"add": {**after, "modificationTime": 0}}]
    operation = "DELETE" if changes else "OPTIMIZE"
    info = {"operation": operation, "operationParameters": {"predicate": "id = 2"}}
    scene = Scene(small.folder, small.evidence)
    return scene.add_commit(small.table, {"commitInfo": info}, *actions)


def newest(small: Small) -> list[DataFile]:
    log = Log(small.table)
    log.update()
    return log.files


def action(small: Small, file: DataFile, changes: bool) -> Facts:
    size = (small.table / file.path).stat().st_size
    said: Facts = {"path": file.path, "size": size, "partitionValues": {}, "dataChange": changes}
    if (vector := file.vector) is not None:
        said["deletionVector"] = {
            "storageType": vector.storage,
            "pathOrInlineDv": vector.path,
            "offset": vector.offset,
            "sizeInBytes": vector.size,
            "cardinality": vector.rows,
        }
    return said


def test_rows_that_a_vector_deletes_are_none_as_delta_rs_has_it(small: Small) -> None:
    rows = [row for each in newest(small) for row in each.rows(small.table)]
    assert sorted(row["id"] for row in rows) == [0, 1, 3, 5]
    assert sorted(rows, key=str) == sorted(rows_at(small.table), key=str)
    verdict = check(small.evidence)
    assert (verdict.ok, verdict.unchecked) == (True, 0), str(verdict)


def test_a_checkpoint_tells_of_vectors_too(small: Small) -> None:
    DeltaTable(str(small.table)).create_checkpoint()
    scene = Scene(small.folder, small.evidence)
    for version in range(small.version):
        scene.remove_commit(small.table, version)
    assert check(small.evidence).ok


def test_a_reader_sees_what_the_entries_must_have_left(small: Small, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    SnapshotReader(small.evidence.pipelines, seen, pause_s=9).poll()
    assert '"rows": 4' in seen.read_text()
    snapshots = SnapshotLog(seen)
    snapshots.update()
    tables = check(small.evidence).cursor.tables
    assert [each for table in tables for each in table.seen(snapshots)] == []


def loses_a_row(small: Small) -> None:
    marked(small, {1}, changes=False)


def brings_rows_back(small: Small) -> None:
    [file] = newest(small)
    left = {**action(small, file, changes=False)}
    left.pop("deletionVector")
    actions = [{"remove": action(small, file, changes=False)}, {"add": left}]
    info = {"commitInfo": {"operation": "OPTIMIZE"}}
    Scene(small.folder, small.evidence).add_commit(small.table, info, *actions)


def vector_gone(small: Small) -> None:
    vector_of(small).unlink()


def vector_damaged(small: Small) -> None:
    file = vector_of(small)
    file.write_bytes(file.read_bytes()[:-6] + b"\0" * 6)


def vector_of(small: Small) -> Path:
    [file] = newest(small)
    assert file.vector is not None
    found = file.vector.file(small.table)
    assert found is not None
    return found


FAULTS: dict[str, tuple[Callable[[Small], None], set[Fault]]] = {
    "a commit that changes no data loses a row": (loses_a_row, {Fault.LOST}),
    "one brings deleted rows back": (brings_rows_back, {Fault.ERASURE, Fault.FOLD}),
    "a vector is gone": (vector_gone, {Fault.MISSING_FILE}),
    "a vector is damaged": (vector_damaged, {Fault.UNREADABLE}),
}
"""What spoils a table, and which faults tell of it: one of them."""


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_vectors_is_found(small: Small, name: str) -> None:
    spoil, faults = FAULTS[name]
    spoil(small)
    assert faults & check(small.evidence).faults
