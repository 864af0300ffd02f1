"""What the tasks of a fold tell of the records that they counted and set apart."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.errors import BatchFailed
from rivermouth.write.files.bad_records import (
    LEAVES,
    QuarantineOutput,
    QuarantineTarget,
    TaskOutput,
    diverted,
)
from rivermouth.write.files.data_files import Folder


def raw(*offsets: int, topic: str = "t") -> pa.RecordBatch:
    """Kafka's rows at these offsets of partition 0."""
    count = len(offsets)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array([b"v%d" % each for each in offsets], pa.binary()),
            "topic": pa.array([topic] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )


def side_output(folder: Path) -> QuarantineOutput:
    reports = folder / "reports"
    reports.mkdir(exist_ok=True)
    target = QuarantineTarget(
        Folder(str(folder / "bad"), LEAVES, tight=False), "c", "p", 1, {"RM603": "bad"}
    )
    return QuarantineOutput(target, reports)


def text(*values: str | None) -> pa.StringArray:
    return pa.array(values, pa.string())


def told(task: TaskOutput, rows: pa.RecordBatch, *bad: int) -> pa.BooleanArray | None:
    """What the sieve says of the rows, of which those with these numbers are bad."""
    codes = text(*("RM603" if each in bad else None for each in range(rows.num_rows)))
    return task.good(rows, codes, pa.nulls(rows.num_rows, pa.string()))


def test_good_records_are_counted_and_bad_ones_are_in_a_file(tmp_path: Path) -> None:
    with side_output(tmp_path).opened() as task:
        assert told(task, raw(0, 1)) is None
        good = told(task, raw(2, 3, 4), 1)
        assert good is not None
        assert good.to_pylist() == [True, False, True]

    found = diverted(tmp_path / "reports", "p")
    assert (found.tasks, found.good) == (1, {("t", 0): 4})
    assert [each.records for each in found.bad] == [{("t", 0): 1}]
    assert found.bad[0].is_whole(tmp_path / "bad")


def test_what_an_attempt_that_failed_had_written_is_removed(tmp_path: Path) -> None:
    task = side_output(tmp_path).opened()
    told(task.__enter__(), raw(0), 0)
    assert len([*(tmp_path / "bad").glob("*.parquet")]) == 1

    passed_over = task.__exit__(RuntimeError, RuntimeError("killed"), None)

    assert not passed_over
    assert diverted(tmp_path / "reports", "p").tasks == 0
    assert not [*(tmp_path / "bad").glob("*.parquet")]


def test_of_two_attempts_at_a_task_one_counts(tmp_path: Path) -> None:
    """The first one failed after it had told of itself."""
    for _ in range(2):
        with side_output(tmp_path).opened() as task:
            told(task, raw(0, 1, 2), 2)
    found = diverted(tmp_path / "reports", "p")
    assert (found.tasks, found.good, len(found.bad)) == (1, {("t", 0): 2}, 1)


def test_attempts_that_found_different_records_are_refused(tmp_path: Path) -> None:
    for rows in (raw(0, 1), raw(1)):  # Kafka has deleted the first one in between
        with side_output(tmp_path).opened() as task:
            told(task, rows)
    with pytest.raises(BatchFailed, match="other records"):
        diverted(tmp_path / "reports", "p")


def test_what_is_not_complete_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(OSError, match="killed"), side_output(tmp_path).opened() as task:
        told(task, raw(0), 0)
    assert diverted(tmp_path / "reports", "p").tasks == 0
    assert not [*(tmp_path / "bad").glob("*.parquet")]
