"""The heap grows with the partitions, up to half of the machine; then fewer consumers are kept."""

from __future__ import annotations

import pytest

from rivermouth.local.heap import BASE_MB, heap_settings, machine_mb

pytestmark = pytest.mark.unit

MEMORY, CAPACITY = "spark.driver.memory", "spark.kafka.consumer.cache.capacity"


@pytest.mark.parametrize(
    ("partitions", "machine", "memory", "capacity"),
    [
        ((), 8192, "2048m", "64"),
        ((4,), 8192, "2050m", "69"),
        ((100, 100), 8192, "2165m", "314"),
        ((2000,), 24_000, "6465m", "2564"),
        ((2000,), 8192, "4096m", "1222"),
        ((10_000,), 24_000, "12000m", "1439"),
        ((2000,), 2048, "2048m", "64"),
    ],
)
def test_heap_and_consumers_by_partitions_and_machine(
    partitions: tuple[int, ...], machine: int, memory: str, capacity: str
) -> None:
    settings = heap_settings(partitions, machine)
    assert settings[MEMORY] == memory
    assert settings[CAPACITY] == capacity


def test_the_machine_has_memory() -> None:
    assert machine_mb() > BASE_MB
