"""What a plan tells of the rows of a record, and which coordinates a batch has: as values."""

from __future__ import annotations

import pytest

from rivermouth.formats.arrow import REFUSAL
from rivermouth.protocol.batches import Batch
from rivermouth.protocol.commits import CommitPlan, Purpose
from rivermouth.write.transform import RowsOfRecord, judged, within
from tests.builders import entry_after, span

GIVEN = f"Project [CASE WHEN … raise_error({REFUSAL}) END AS _kafka#7]"
TOP = "Project [_kafka#7]"
LEAF = "LogicalRDD [key#1, value#2], false"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ([TOP, GIVEN, LEAF], RowsOfRecord.ONE),
        ([TOP, "Project [a#2, _kafka#7]", "SubqueryAlias d", GIVEN, LEAF], RowsOfRecord.ONE),
        ([TOP, "Project [a#2]", GIVEN, "Filter (a#1 > 2)", LEAF], RowsOfRecord.ONE),
        ([TOP, "Filter (a#2 > 0)", GIVEN, LEAF], RowsOfRecord.AT_MOST_ONE),
        ([TOP, "Filter x", "Project [a#2]", GIVEN, LEAF], RowsOfRecord.AT_MOST_ONE),
        ([TOP, "Join Inner", GIVEN, LEAF, "Range (0, 1)"], RowsOfRecord.ANY),
        ([TOP, "Generate explode(x)", GIVEN, LEAF], RowsOfRecord.SEVERAL),
        ([TOP, "Filter x", "Generate inline(x)", GIVEN, LEAF], RowsOfRecord.SEVERAL),
        ([TOP, "Generate explode(x)", "Window [sum(x)]", GIVEN, LEAF], RowsOfRecord.ANY),
        ([TOP, "GlobalLimit 1", "LocalLimit 1", GIVEN, LEAF], RowsOfRecord.ANY),
        ([TOP, "Project [a text of", "two lines]", GIVEN, LEAF], RowsOfRecord.ANY),
        (["Project [_kafka#8]", "Project [x AS _kafka#8]", GIVEN, LEAF], RowsOfRecord.ANY),
        ([TOP, "LogicalRDD [_kafka#7]"], RowsOfRecord.ANY),
        ([], RowsOfRecord.ANY),
    ],
)
def test_the_plan_tells_how_many_rows_a_record_can_have(
    plan: list[str], expected: RowsOfRecord
) -> None:
    assert judged(plan) is expected


def test_a_partition_is_looked_up_by_its_number() -> None:
    assert within([span(3, 5), span(7, 9, 2)]) == (
        "case _kafka.topic when 't' then _kafka.offset >= get(array(3L, null, 7L),"
        " _kafka.partition) and _kafka.offset < get(array(5L, null, 9L), _kafka.partition) end"
    )
    assert within([]) == "false"


def test_a_batch_says_which_offsets_it_covers() -> None:
    ranges = (span(3, 5), span(7, 9, 2))
    entry = entry_after(None, *ranges)
    batch = Batch.of(CommitPlan(Purpose.BATCH, entry.draft, "c-1", None))
    assert (batch.pipeline, batch.sequence, batch.commit) == (entry.pipeline, 1, "c-1")
    assert batch.ranges == ranges
    assert batch.range_of(ranges[1].topic, 2) == ranges[1]
    assert batch.range_of(ranges[1].topic, 1) is None
