"""What is left of ranges: records counted, the first and the last, and what is deleted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rivermouth.protocol.offsets import OffsetRange
from rivermouth.replay.readable import ReadableRange, counted
from rivermouth.verification.ledger.entry import Partition
from tests.builders import span
from tests.unit.verification.doubles import ZERO, MemorySource, message

pytestmark = pytest.mark.unit

HOLED = MemorySource(
    records={
        ZERO: [message(each, b"") for each in (2, 3, 5, 9)],
        ("t", 1): [message(0, b"", partition=("t", 1))],
    },
    first={ZERO: 2},
)


@pytest.mark.parametrize(
    "found",
    [
        ReadableRange(span(2, 10), 4, 2, 9),
        ReadableRange(span(3, 9), 2, 3, 5),
        ReadableRange(span(6, 9), 0, None, None),
        ReadableRange(span(0, 4), 2, 2, 3, deleted=span(0, 2)),
        ReadableRange(span(0, 2), 0, None, None, deleted=span(0, 2)),
        ReadableRange(span(0, 1), 0, None, None, deleted=span(0, 1)),
        ReadableRange(span(0, 5, 1), 1, 0, 0),
    ],
    ids=lambda each: str(each.range),
)
def test_a_range_is_counted_by_its_records(found: ReadableRange) -> None:
    assert counted(HOLED, (found.range,)) == {found.range: found}


def test_ranges_of_one_partition_are_counted_apart() -> None:
    ranges = (span(2, 3), span(3, 5), span(9, 10), span(0, 1, 1))
    found = counted(HOLED, ranges)
    assert {each.range: each.records for each in found.values()} == dict.fromkeys(ranges, 1)


class Deleting(MemorySource):
    """Retention deletes up to 5 between the first question and the second one."""

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        self.first = {ZERO: 5 if self.first else 0}
        return {each: self.first[each] for each in partitions}


def test_what_is_deleted_during_the_reading_is_said() -> None:
    source = Deleting(records={ZERO: [message(each, b"") for each in (5, 6)]})
    asked: OffsetRange = span(0, 8)
    assert counted(source, (asked,))[asked] == ReadableRange(asked, 2, 5, 6, deleted=span(0, 5))
