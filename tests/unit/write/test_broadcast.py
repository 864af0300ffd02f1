"""Which changes are broadcast, and what becomes of those that are too large for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.errors import PySparkException

from rivermouth.write.landings.folding import RECORDS_MAX, Broadcast

pytestmark = pytest.mark.unit

TOO_LARGE = (
    "Job aborted due to stage failure: Total size of serialized results of 2 tasks (1025.0 MiB) is "
    "bigger than spark.driver.maxResultSize (1024.0 MiB)",
    "Not enough memory to build and broadcast the table to all worker nodes.",
    "Not enough memory to store all the data",
    "Cannot broadcast the table that is larger than 8.0 GiB: 9.0 GiB.",
    "Could not execute broadcast in 300 secs.",
    "Job aborted due to stage failure: There is not enough memory to build the hash map",
)


@dataclass
class Writes:
    """Notes how each write was made; fails as long as it has faults."""

    faults: list[Exception] = field(default_factory=list)
    made: list[str] = field(default_factory=list)

    def land(self, landing: Broadcast, records: int) -> None:
        landing.write(records, lambda: self._write("small"), lambda: self._write("large"))

    def _write(self, how: str) -> None:
        self.made.append(how)
        if self.faults:
            raise self.faults.pop(0)


@pytest.mark.parametrize(
    ("records", "how"), [(0, "small"), (RECORDS_MAX, "small"), (RECORDS_MAX + 1, "large")]
)
def test_few_records_are_broadcast(records: int, how: str) -> None:
    writes = Writes()
    writes.land(Broadcast(), records)
    assert writes.made == [how]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_changes_too_large_for_it_are_written_without_and_half_as_many_are_tried_again(
    text: str,
) -> None:
    landing, writes = Broadcast(), Writes([PySparkException(text)])
    for records in (1000, 1000, 501, 500, 1000):
        writes.land(landing, records)
    assert writes.made == ["small", "large", "large", "large", "small", "large"]


@pytest.mark.parametrize(
    ("records", "faults", "made"),
    [
        (1, ["No space left on device"], ["small"]),
        (1, [TOO_LARGE[0], "No space left on device"], ["small", "large"]),
        (1, [TOO_LARGE[0], TOO_LARGE[3]], ["small", "large"]),
        (RECORDS_MAX + 1, [TOO_LARGE[0]], ["large"]),
    ],
)
def test_another_fault_or_that_of_the_large_way_is_raised(
    records: int, faults: list[str], made: list[str]
) -> None:
    writes = Writes([PySparkException(each) for each in faults])
    with pytest.raises(PySparkException, match=faults[-1][:10]):
        writes.land(Broadcast(), records)
    assert writes.made == made
