"""What a process may use of the machine, and how much of it the heap of a session gets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rivermouth.local.machine import (
    CAPACITY,
    MEMORY,
    cache_settings,
    cores,
    heap_settings,
    memory_mb,
)

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


@pytest.mark.parametrize(
    ("partitions", "machine", "given", "memory", "capacity"),
    [
        ((), 8192, "", "2048m", 64),
        ((4,), 8192, "", "2050m", 69),
        ((100, 100), 8192, "", "2165m", 314),
        ((2000,), 24_000, "", "6465m", 2564),
        ((2000,), 8192, "", "4096m", 1222),
        ((10_000,), 24_000, "", "12000m", 1439),
        ((2000,), 2048, "", "2048m", 64),
        ((2000,), 0, "", "2048m", 64),
        (None, 24_000, "", "2048m", 500),
        ((2000,), 24_000, "8g", "8g", 2564),
        ((2000,), 24_000, "4096M", "4096M", 1222),
        ((2000,), 24_000, "4194304k", "4194304k", 1222),
        ((2000,), 24_000, "much", "much", 64),
        (None, 24_000, "8g", "8g", 500),
    ],
)
def test_heap_and_consumers_by_partitions_and_machine(
    partitions: tuple[int, ...] | None, machine: int, given: str, memory: str, capacity: int
) -> None:
    found = heap_settings(partitions, machine, given)
    assert found == {MEMORY: memory, CAPACITY: str(capacity)}


@pytest.mark.parametrize(
    ("partitions", "memory", "capacity"),
    [
        ((), "1g", 64),
        ((4,), "1g", 69),
        ((100, 100), "1g", 314),
        ((2000,), "1g", 64 + 289),
        ((2000,), "8g", 2564),
        ((2000,), "512m", 64),
        (None, "1g", 500),
    ],
)
def test_consumers_of_an_executor_by_partitions_and_its_memory(
    partitions: tuple[int, ...] | None, memory: str, capacity: int
) -> None:
    assert cache_settings(partitions, memory) == {CAPACITY: str(capacity)}
