"""The heap grows with the partitions, up to half of the machine; then fewer consumers are kept."""

from __future__ import annotations

import pytest

from rivermouth.local.machine import CAPACITY, MEMORY, heap_settings

pytestmark = pytest.mark.unit


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
