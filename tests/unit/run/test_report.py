"""What is said about commits, pipelines and runs; and the exit code."""

from __future__ import annotations

import json

import pytest

from rivermouth.errors import (
    BatchFailed,
    KafkaUnreachable,
    OffsetGap,
    RivermouthError,
    TableLocked,
)
from rivermouth.protocol.entry import RowCounts
from rivermouth.run.report import CommitReport, OpenReport, PipelineReport, RetryReport, exit_code
from tests.builders import position, span

pytestmark = pytest.mark.unit

AWAY = KafkaUnreachable("no broker answers", where="k:9092", found="_TRANSPORT")
GAP = OffsetGap("a gap", where="orders t-0")
BORN = CommitReport(
    "orders", 1, 1, (span(7, 7), span(0, 0, 1)), (RowCounts(0, 0),) * 2, position(7, 0), 0.8
)


def committed(*rows: RowCounts) -> CommitReport:
    ranges = tuple(span(0, 2000, n) for n in range(len(rows)))
    return CommitReport("orders", 7, 9, ranges, rows, position(2000), 0.84)


def done(error: RivermouthError | None = None, quarantined: int = 0) -> PipelineReport:
    return PipelineReport("orders", 3, 1200, quarantined, 7, 2.5, error)


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (committed(RowCounts(1200, 0)), "entry 7, version 9: 1,200 records, 0.8 s"),
        (
            committed(RowCounts(1200, 2), RowCounts(1, 1)),
            "entry 7, version 9: 1,201 records, 3 quarantined, 0.8 s",
        ),
        (committed(RowCounts(0, 0)), "entry 7, version 9: 0 records, 0.8 s"),
        (BORN, "entry 1, version 1: 2 position(s) recorded"),
        (done(), "OK, 1,200 records in 3 commit(s), entry 7, 2.5 s"),
        (done(quarantined=3), "OK, 1,200 records in 3 commit(s), 3 quarantined, entry 7, 2.5 s"),
        (done(GAP), f"FAILED {GAP}"),
        (
            RetryReport("orders", AWAY, 0.84),
            "tried again in 0.8 s: RM301 k:9092: no broker answers; found _TRANSPORT",
        ),
    ],
)
def test_a_report_is_one_line(
    report: CommitReport | PipelineReport | RetryReport, line: str
) -> None:
    assert report.line() == f"orders: {line}"


@pytest.mark.parametrize(
    ("sequence", "projected", "line"),
    [
        (0, 0, "orders: first run, 48,800 offsets behind"),
        (7, 0, "orders: resumes after entry 7, 48,800 offsets behind"),
        (
            7,
            1,
            "orders: resumes after entry 7, 48,800 offsets behind; "
            "1 commit(s) of a dead driver found standing, kept",
        ),
    ],
)
def test_an_opening_says_where_it_starts_and_what_it_found(
    sequence: int, projected: int, line: str
) -> None:
    assert OpenReport("orders", sequence, position(5), 48_800, projected).line() == line


def test_a_report_is_json_with_null_where_there_is_no_error() -> None:
    assert json.loads(json.dumps(done().as_dict())) == {
        "name": "orders",
        "ok": True,
        "commits": 3,
        "applied": 1200,
        "quarantined": 0,
        "skipped": 0,
        "sequence": 7,
        "seconds": 2.5,
        "retries": 0,
        "error": None,
    }
    failed = done(TableLocked("locked", where="t", expected="one")).as_dict()
    assert failed["ok"] is False
    assert failed["error"]["code"] == "RM413"


HALT, FAILED, UNREACHABLE = OffsetGap("x"), BatchFailed("x"), KafkaUnreachable("x")


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([None], 0),
        ([None, None], 0),
        ([HALT], 3),
        ([FAILED], 1),
        ([HALT, HALT], 3),
        ([FAILED, UNREACHABLE], 1),
        ([HALT, FAILED], 1),
        ([None, HALT], 5),
        ([FAILED, None, HALT], 5),
    ],
)
def test_the_exit_code_says_whether_none_some_or_all_failed(
    errors: list[RivermouthError | None], code: int
) -> None:
    assert exit_code([done(each) for each in errors]) == code
