"""What a process may use: all of the machine, or what its control groups leave it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rivermouth.local.machine import cores, memory_mb

pytestmark = pytest.mark.unit

GB = 1 << 30


def test_without_limits_it_is_the_whole_machine(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    assert cores(nothing, nothing) == len(os.sched_getaffinity(0))
    assert memory_mb(nothing, nothing) > 0


@pytest.mark.parametrize(
    ("files", "mb"),
    [
        ({"memory.max": f"{GB}"}, 1024),
        ({"memory.max": "max", "a/b/memory.max": f"{GB // 2}"}, 512),
        ({"a/memory.max": f"{GB // 4}", "a/b/memory.max": f"{GB // 2}"}, 256),
        ({"memory/memory.limit_in_bytes": f"{GB}"}, 1024),
    ],
)
def test_the_smallest_limit_of_memory_holds(
    tmp_path: Path, files: Mapping[str, str], mb: int
) -> None:
    assert memory_mb(*grouped(tmp_path, files)) == mb


@pytest.mark.parametrize(
    ("files", "number"),
    [
        ({"cpu.max": "100000 100000"}, 1),
        ({"a/b/cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "max 100000"}, len(os.sched_getaffinity(0))),
    ],
)
def test_a_quota_of_cores_holds(tmp_path: Path, files: Mapping[str, str], number: int) -> None:
    assert cores(*grouped(tmp_path, files)) == number


def grouped(folder: Path, files: Mapping[str, str]) -> tuple[Path, Path]:
    """Control groups of a process in ``a/b``, and the file that says so."""
    own = folder / "own"
    own.write_text("1:name=x:/c\n0::/a/b\n", encoding="utf-8")
    for name, text in files.items():
        file = folder / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    return folder / "groups", own
