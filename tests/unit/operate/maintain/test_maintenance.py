"""What maintenance says of what went wrong, and that one trouble does not hide another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import pytest

from rivermouth.config import Config, TableName
from rivermouth.operate.maintain import SCRATCH, Maintenance
from rivermouth.run.report import exit_code
from rivermouth.spark.tables import Address
from rivermouth.warehouse.warehouse import warehouse_of
from tests.doubles import NO_SESSION
from tests.unit.operate.doubles import configured

pytestmark = pytest.mark.unit


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path, bids="bids")


class Failing:
    """A place where nothing can be held, for a foreign reason."""

    def __init__(self, config: Config, fault: Exception) -> None:
        self._fault = fault
        self._place = warehouse_of(config, NO_SESSION)
        self.lake = self._place.lake

    def hold(self, table: TableName) -> AbstractContextManager[None]:
        raise self._fault

    def offsets(self) -> Address:
        return self._place.offsets()

    def scratch(self) -> None:
        """There is one machine."""


def maintenance(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> Maintenance:
    monkeypatch.setattr(
        "rivermouth.operate.maintain.warehouse_of", lambda *_: Failing(config, fault)
    )
    return Maintenance(config, NO_SESSION, tmp_path / "scratch")


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (ConnectionError("the JVM went"), "RM503", "the JVM went"),
        (OSError(28, "No space left on device"), "RM503", "No space left on device"),
        (KeyError("numDeletedFiles"), "RM503", "numDeletedFiles"),
        (RuntimeError("[DELTA_CONCURRENT_APPEND] a file"), "RM504", "DELTA_CONCURRENT_APPEND"),
    ],
)
def test_an_error_of_maintenance_is_not_one_of_a_batch(
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    code: str,
    said: str,
) -> None:
    [report] = maintenance(config, tmp_path, monkeypatch, fault).pipelines(["bids"])
    error = report.error
    assert error is not None
    assert (error.code, error.where) == (code, "bids")
    assert said in error.found
    assert "batch" not in str(error)
    assert "maint" in error.remedy


def test_scratch_that_cannot_be_removed_is_one_failed_report_after_the_others(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch" / "checkpoints").mkdir(parents=True)

    def refused(root: Path) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(root))

    monkeypatch.setattr("rivermouth.operate.maintain.remove_dead", refused)
    reports = maintenance(config, tmp_path, monkeypatch, OSError("lost")).pipelines(["bids"])
    assert [each.pipeline for each in reports] == ["bids", SCRATCH]
    error = reports[-1].error
    assert error is not None
    assert "Permission denied" in error.found
    assert exit_code([reports[-1]]) == 1
