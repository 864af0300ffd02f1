"""Which changes are broadcast, and what becomes of those that are too large for it."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    """Notes whether each write was told to broadcast; fails as long as it has faults."""

    faults: list[Exception] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)

    def __call__(self, broadcast: bool) -> None:
        self.told.append(broadcast)
        if self.faults:
            raise self.faults.pop(0)


@pytest.mark.parametrize(
    ("records", "broadcast"), [(0, True), (RECORDS_MAX, True), (RECORDS_MAX + 1, False)]
)
def test_few_records_are_broadcast(records: int, broadcast: bool) -> None:
    writes = Writes()
    Broadcast().write(records, writes)
    assert writes.told == [broadcast]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_changes_too_large_for_it_are_written_without_and_so_are_later_ones(text: str) -> None:
    landing, writes = Broadcast(), Writes([PySparkException(text)])
    landing.write(1, writes)
    landing.write(1, writes)
    assert writes.told == [True, False, False]


def test_another_fault_or_the_same_without_a_broadcast_is_raised() -> None:
    for records, text in ((1, "No space left on device"), (RECORDS_MAX + 1, TOO_LARGE[0])):
        landing, writes = Broadcast(), Writes([PySparkException(text)])
        with pytest.raises(PySparkException, match=text[:10]):
            landing.write(records, writes)
        assert len(writes.told) == 1


def test_a_second_fault_is_raised() -> None:
    faults: list[Exception] = [PySparkException(TOO_LARGE[0]), PySparkException("gone")]
    with pytest.raises(PySparkException, match="gone"):
        Broadcast().write(1, Writes(faults))
