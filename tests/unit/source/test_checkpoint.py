"""What a checkpoint of Spark says of a batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rivermouth.errors import BatchFailed, LogTruncated
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.source.streaming import Checkpoint
from tests.builders import span

pytestmark = pytest.mark.unit

META = '{"batchWatermarkMs":0,"batchTimestampMs":1}'


def v1(*partitions: int) -> str:
    """An offset log file as Spark writes it by default."""
    return f"v1\n{META}\n{nested(*partitions)}"


def v2(*partitions: int) -> str:
    """An offset log file of the newer format: sources by number."""
    return f"v2\n{META}\n0:{nested(*partitions)}"


def nested(*partitions: int) -> str:
    return json.dumps({"t": {str(n): offset for n, offset in enumerate(partitions)}})


def source(*partitions: int) -> str:
    return f"\0v1\n{nested(*partitions)}"


def checkpoint(folder: Path, **files: str) -> Checkpoint:
    """``offsets_0="…"`` is the file ``offsets/0``."""
    for name, text in files.items():
        file = folder.joinpath(*name.split("_"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "files", "batch", "expected"),
    [
        ("the first", {"sources_0_0": source(5, 8), "offsets_0": v1(9, 8)}, 0, (span(5, 9),)),
        (
            "the next",
            {"offsets_0": v1(5, 8), "offsets_1": v1(6, 9)},
            1,
            (span(5, 6), span(8, 9, 1)),
        ),
        ("format 2", {"offsets_0": v2(5, 8), "offsets_1": v2(6, 8)}, 1, (span(5, 6),)),
        ("format changes", {"offsets_0": v1(5), "offsets_1": v2(6)}, 1, (span(5, 6),)),
        ("an empty one", {"offsets_3": v1(5), "offsets_4": v1(5)}, 4, ()),
        ("an added partition", {"offsets_0": v1(5), "offsets_1": v1(5, 2)}, 1, (span(0, 2, 1),)),
        ("no NUL byte", {"sources_0_0": source(5)[1:], "offsets_0": v1(9)}, 0, (span(5, 9),)),
    ],
)
def test_the_ranges_of_a_batch_are_what_spark_wrote_down_before_it(
    tmp_path: Path,
    name: str,
    files: dict[str, str],
    batch: int,
    expected: tuple[OffsetRange, ...],
) -> None:
    assert checkpoint(tmp_path, **files).ranges(batch) == expected, name


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("no file", {"offsets_0": v1(5)}),
        ("an empty file", {"offsets_0": v1(5), "offsets_1": ""}),
        ("a cut file", {"offsets_0": v1(5), "offsets_1": v1(6)[:-4]}),
        ("a missing line", {"offsets_0": v1(5), "offsets_1": f"v1\n{META}"}),
        ("a format of the future", {"offsets_0": v1(5), "offsets_1": v1(6).replace("v1", "v3")}),
        ("no source", {"offsets_0": v1(5), "offsets_1": f"v1\n{META}\n-"}),
        ("not a position", {"offsets_0": v1(5), "offsets_1": f"v1\n{META}\n[1]"}),
        ("a negative offset", {"offsets_0": v1(5), "offsets_1": v1(-2)}),
    ],
)
def test_a_checkpoint_that_cannot_be_read_fails_the_batch(
    tmp_path: Path, name: str, files: dict[str, str]
) -> None:
    with pytest.raises(BatchFailed, match="checkpoint of this run cannot be read"):
        checkpoint(tmp_path, **files).ranges(1)


def test_a_partition_that_moved_backwards_halts(tmp_path: Path) -> None:
    with pytest.raises(LogTruncated):
        checkpoint(tmp_path, offsets_0=v1(5), offsets_1=v1(4)).ranges(1)
