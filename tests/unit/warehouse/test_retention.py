"""Which rows of the offsets table may go."""

from __future__ import annotations

import pytest

from rivermouth.warehouse.retention import Expired, OldRows

pytestmark = pytest.mark.unit


def expired(*rows: OldRows) -> Expired:
    found = Expired()
    found.add(rows)
    return found


CASES: dict[str, tuple[list[OldRows], list[str]]] = {
    "nothing old": ([], []),
    "one partition": (
        [("p", "t", 0, 9, 8)],
        ["pipeline = 'p' AND sequence < 9 AND quarantined = 0"],
    ),
    "in parts, in any order": (
        [("p", "t", 0, 9, 4), ("p", "t", 0, 3, 4)],
        ["pipeline = 'p' AND sequence < 9 AND quarantined = 0"],
    ),
    "idle partitions keep their newest row": (
        [("p", "t", 0, 9, 8), ("p", "t", 2, 4, 3), ("p", "t", 1, 4, 3), ("p", "u", 0, 5, 1)],
        [
            "pipeline = 'p' AND sequence < 9 AND quarantined = 0"
            " AND NOT (sequence = 4 AND topic = 't' AND partition IN (1, 2))"
            " AND NOT (sequence = 5 AND topic = 'u' AND partition IN (0))"
        ],
    ),
    "pipelines do not count for each other": (
        [("p", "t", 0, 9, 8), ("b", "t", 0, 4, 3)],
        [
            "pipeline = 'b' AND sequence < 4 AND quarantined = 0",
            "pipeline = 'p' AND sequence < 9 AND quarantined = 0",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_newest_old_row_of_each_partition_stays(case: str) -> None:
    rows, predicates = CASES[case]
    assert expired(*rows).predicates() == predicates


@pytest.mark.parametrize(
    ("numbers", "worth_it"), [((), False), ((1,), False), ((2,), True), ((3, 1), True)]
)
def test_files_are_not_written_anew_for_little(numbers: tuple[int, ...], worth_it: bool) -> None:
    rows = [("p", "t", place, 9, number) for place, number in enumerate(numbers)]
    assert expired(*rows).worth_it is worth_it
