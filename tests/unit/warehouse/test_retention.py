"""Which rows of the offsets table may go."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermouth.warehouse.offsets_rows import OldRows, expired
from tests.reading import rows_at

pytestmark = pytest.mark.unit


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
            " AND NOT ((sequence = 4 AND topic = 't' AND partition IN (1, 2))"
            " OR (sequence = 5 AND topic = 'u' AND partition IN (0)))"
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
    assert expired(rows) == predicates


def test_a_condition_on_thousands_of_idle_partitions_is_a_tree_that_delta_can_read(
    tmp_path: Path,
) -> None:
    places = [("p", "t", place, place, 2) for place in range(1, 3000)]
    [predicate] = expired(places)
    depths = accumulate({"(": 1, ")": -1}.get(each, 0) for each in predicate)
    assert max(depths) < 20
    rows = {"pipeline": ["p"] * 2, "topic": ["t"] * 2, "partition": [7, 7], "sequence": [6, 7]}
    table = str(tmp_path / "offsets")
    write_deltalake(table, pa.table({**rows, "quarantined": [0, 0]}))
    DeltaTable(table).delete(predicate)
    assert [each["sequence"] for each in rows_at(table)] == [7]


@pytest.mark.parametrize(
    ("numbers", "worth_it"), [((), False), ((1,), False), ((2,), True), ((3, 1), True)]
)
def test_files_are_not_written_anew_for_little(numbers: tuple[int, ...], worth_it: bool) -> None:
    rows = [("p", "t", place, 9, number) for place, number in enumerate(numbers)]
    assert bool(expired(rows)) is worth_it
