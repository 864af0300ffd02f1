"""``rivermouth maintain`` before and after Spark: what it refuses, what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.errors import BatchFailed, TableLocked
from rivermouth.operate.maintain import SCRATCH, MaintenanceReport, TableReport
from rivermouth.run.outcome import maintained
from rivermouth.run.report import exit_code
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

WELL = MaintenanceReport("bids", (TableReport("bronze.bids", 12, 1_300, 0),))
LOCKED = MaintenanceReport("orders", (), TableLocked("another process writes this table"))
QUIET = MaintenanceReport(
    "idle", (TableReport("bronze.idle", quiet="no entry for 31 days, which the next run …"),)
)
LEFT = MaintenanceReport(SCRATCH, (), BatchFailed("it could not be maintained", found="EACCES"))


def test_it_explains_itself_in_80_columns(rivermouth: Rivermouth) -> None:
    ended = rivermouth("maintain", "--help")
    assert ended.code == 0
    assert [line for line in ended.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("hours", ["23", "0", "-1"])
def test_less_than_a_day_is_refused_before_spark_starts(
    rivermouth: Rivermouth, lake_yml: Path, hours: str
) -> None:
    ended = rivermouth("maintain", lake_yml, "--retain-hours", hours)
    assert ended.code == 2
    assert f"--retain-hours is {hours} — at least 24" in ended.err
    assert not (lake_yml.parent / "lake").exists()


def test_a_pipeline_that_is_not_configured_is_refused(
    rivermouth: Rivermouth, lake_yml: Path
) -> None:
    ended = rivermouth("maintain", lake_yml, "--select", "bid")
    assert ended.code == 2
    assert 'there is no pipeline "bid"' in ended.err


def test_every_table_has_a_line_and_every_failure_its_remedy() -> None:
    text = maintained([WELL, LOCKED])
    assert "bronze.bids" in text
    assert "1,300" in text
    assert "FAILED orders" in text
    assert "RM413" in text
    assert text.endswith("FAILED: 1 of 2 pipelines")
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_a_skipped_table_says_why_and_is_no_failure() -> None:
    text = maintained([WELL, QUIET])
    assert "bronze.idle: skipped: no entry for 31 days" in text
    assert text.endswith("OK")
    assert exit_code([WELL, QUIET]) == 0
    assert QUIET.as_dict()["tables"][0]["quiet"].startswith("no entry for 31 days")


def test_scratch_that_stayed_is_a_failure_after_the_tables_and_counts_as_no_pipeline() -> None:
    text = maintained([WELL, LEFT])
    assert "1,300" in text
    assert "EACCES" in text
    assert text.endswith("FAILED: scratch")
    assert maintained([WELL, LOCKED, LEFT]).endswith("FAILED: 1 of 2 pipelines")


def test_a_dry_run_says_that_nothing_was_changed() -> None:
    assert maintained([WELL], dry_run=True).endswith("OK: dry run, nothing was changed")


@pytest.mark.parametrize(
    ("reports", "code"),
    [
        ([WELL], 0),
        ([LOCKED], 3),
        ([WELL, LOCKED], 5),
        ([LOCKED, LOCKED], 3),
        ([WELL, LEFT], 5),
        ([], 0),
    ],
)
def test_the_exit_code_tells_what_failed(reports: list[MaintenanceReport], code: int) -> None:
    assert exit_code(reports) == code
