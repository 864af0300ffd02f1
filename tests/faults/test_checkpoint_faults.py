"""Checkpoints and offsets tables that are lost, stale, damaged or edited: the ledger decides."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermouth.config import load
from rivermouth.operate.rebuild import rebuild_offsets
from rivermouth.run.report import CommitReport
from tests.faults.outcomes import (
    applied,
    check_proved,
    problems,
    went_well,
)
from tests.faults.spark_lake import SparkLake
from tests.lake import Heard
from tests.waiting import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def ten(lake: SparkLake, topic: str) -> None:
    lake.bids(topic, 10, partitions=2)


def filled(lake: SparkLake, topic: str, heard: Heard | None = None) -> Path:
    """A pipeline ``p`` that has committed ten records in two batches; its table."""
    table = lake.ready(topic, 2, 10, max_offsets_per_trigger=6)
    lake.go(heard=heard)
    return table


@dataclass
class Keeping(Heard):
    """Keeps a copy of the live checkpoint at the first commit that holds records."""

    checkpoints: Path = Path()
    copied: Path = Path()

    def committed(self, report: CommitReport) -> None:
        super().committed(report)
        if any(each.span for each in report.ranges) and not self.copied.exists():
            [live] = (each for each in self.checkpoints.iterdir() if each.is_dir())
            shutil.copytree(live, self.copied)


def emptied(checkpoint: Path, left: slice = slice(0)) -> None:
    """So much of each file is left."""
    for file in checkpoint.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[left])


def foreign(checkpoint: Path) -> None:
    offsets = checkpoint / "offsets" / "0"
    offsets.write_text(offsets.read_text("utf-8").replace("kept-restored", "elsewhere"), "utf-8")


DAMAGES: tuple[Callable[[Path], object], ...] = (
    lambda stale: None,
    emptied,
    lambda stale: emptied(stale, slice(-7)),
    lambda stale: (stale / "offsets" / "0").rename(stale / "offsets" / "7"),
    foreign,
    shutil.rmtree,
)


@pytest.mark.thorough
def test_checkpoints_that_are_stale_damaged_or_of_others_have_no_effect(lake: SparkLake) -> None:
    checkpoints, copied = lake.scratch / "checkpoints", lake.folder / "kept"
    filled(lake, "kept-restored", Keeping(checkpoints=checkpoints, copied=copied))
    assert (copied / "offsets" / "0").exists(), "a real checkpoint of the first run"
    for damage in DAMAGES:
        copy = checkpoints / f"p-{uuid.uuid4().hex}"
        shutil.copytree(copied, copy)
        damage(copy)
        copy.with_name(f"{copy.name}.lock").touch()
    ten(lake, "kept-restored")

    heard = lake.go()

    assert (heard.opens[0].behind, heard.ends[0].applied) == (10, 10)
    check_proved(lake, records=20)
    assert [each for each in checkpoints.iterdir() if each.is_dir()] == []


def test_a_scratch_folder_wiped_in_mid_run_is_made_anew(lake: SparkLake) -> None:
    lake.ready("wiped", 2, 10)
    with lake.continuous("p") as heard:
        wait_for(lambda: applied(heard) == 10)
        lake.scratch.rename(lake.folder / "wiped")  # at once: Spark may be writing into it
        ten(lake, "wiped")
        wait_for(lambda: applied(heard) == 20 or bool(heard.ends))

    assert [each.error.code for each in heard.retries] == ["RM503"]
    went_well(heard)
    check_proved(lake, records=20)


def test_an_edited_offsets_table_misleads_no_run_and_verify_reports_it(lake: SparkLake) -> None:
    """A run does not look for rows that were taken out. It puts none of them back."""
    filled(lake, "edited")
    offsets = DeltaTable(str(lake.path("rivermouth.offsets")))
    rows = lake.rows("rivermouth.offsets")
    offsets.delete("sequence = 2")
    offsets.update(updates={"until_offset": "2", "applied": "999"}, predicate="sequence = 3")
    ten(lake, "edited")

    heard = lake.go()

    assert (heard.opens[0].projected, heard.ends[0].applied) == (0, 10)
    assert [each for each in lake.rows("rivermouth.offsets") if each["sequence"] == 2] == []
    found = problems(lake)
    assert {line.partition(" edited-")[0] for line in found} == {
        "offsets table, sequence 2",
        "offsets table, sequence 3",
    }
    rebuild_offsets(load(lake.file))
    rebuilt = lake.rows("rivermouth.offsets")
    assert [each for each in rows if each not in rebuilt] == []
    check_proved(lake, records=20)


@pytest.mark.thorough
def test_an_offsets_table_from_a_backup_is_brought_up_to_date_and_one_that_is_ahead_halts(
    lake: SparkLake,
) -> None:
    table = filled(lake, "backup")
    backup = lake.folder / "backup"
    shutil.copytree(lake.warehouse, backup)
    ten(lake, "backup")
    commits = lake.go().ends[0].commits
    shutil.rmtree(lake.path("rivermouth.offsets"))
    shutil.copytree(backup / "rivermouth" / "offsets", lake.path("rivermouth.offsets"))

    heard = lake.go()

    assert (heard.opens[0].projected, heard.ends[0].applied) == (commits, 0)
    check_proved(lake, records=20)
    shutil.rmtree(table)
    shutil.copytree(backup / table.relative_to(lake.warehouse), table)
    halted = lake.refused()
    assert (halted.code, halted.exit_code) == ("RM415", 3)
    assert DeltaTable(table).count() == 10
