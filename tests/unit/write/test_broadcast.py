"""Which changes are broadcast, and what becomes of those that are too large for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from pyspark.errors import PySparkException

from rivermouth.write.landings.broadcast import RECORDS_MAX, Broadcast

pytestmark = pytest.mark.unit

TOO_LARGE = (
    "Job aborted due to stage failure: Total size of serialized results of 2 tasks (1025.0 MiB) is "
    "bigger than spark.driver.maxResultSize (1024.0 MiB)",
    "Not enough memory to build and broadcast the table to all worker nodes.",
    "Cannot broadcast the table that is larger than 8.0 GiB: 9.0 GiB.",
)


@dataclass
class Writes:
    """Notes which way each write took, by its number; fails as long as it has faults."""

    faults: list[Exception] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    def ways(self, number: int = 3) -> list[Callable[[], None]]:
        return [partial(self._write, each) for each in range(number)]

    def _write(self, number: int) -> None:
        self.taken.append(number)
        if self.faults:
            raise self.faults.pop(0)


@pytest.mark.parametrize(("records", "way"), [(0, 0), (RECORDS_MAX, 0), (RECORDS_MAX + 1, 1)])
def test_few_records_are_broadcast(records: int, way: int) -> None:
    writes = Writes()
    Broadcast().write(records, *writes.ways())
    assert writes.taken == [way]


@pytest.mark.parametrize("text", TOO_LARGE)
@pytest.mark.parametrize("failing", [1, 2])
def test_changes_too_large_for_a_way_take_the_next_and_so_do_later_ones(
    text: str, failing: int
) -> None:
    landing, writes = Broadcast(), Writes([PySparkException(text) for _ in range(failing)])
    landing.write(1, *writes.ways())
    landing.write(1, *writes.ways())
    landing.write(RECORDS_MAX + 1, *writes.ways())
    assert writes.taken == [*range(failing), failing, failing, failing]


@pytest.mark.parametrize(
    ("records", "faults", "taken"),
    [
        (1, ["No space left on device"], [0]),
        (1, [TOO_LARGE[0], "No space left on device"], [0, 1]),
        (1, [TOO_LARGE[0], TOO_LARGE[2]], [0, 1]),
        (RECORDS_MAX + 1, [TOO_LARGE[0]], [1]),
    ],
)
def test_another_fault_or_that_of_the_last_way_is_raised(
    records: int, faults: list[str], taken: list[int]
) -> None:
    writes = Writes([PySparkException(each) for each in faults])
    with pytest.raises(PySparkException, match=faults[-1][:10]):
        Broadcast().write(records, *writes.ways(2))
    assert writes.taken == taken
