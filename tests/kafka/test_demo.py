"""The demo, a thirtieth of its size: two real runs, one real SIGKILL, the proof."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.reading import table_at

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill, pytest.mark.slow]

SMALL = """
import sys
from pathlib import Path
from rivermouth.local.demo import Sizes, Story

say = lambda text: print(text, flush=True)
Story(Path(sys.argv[1]), say, Sizes(bids=9_000, changes=3_000)).tell(None)
"""


@pytest.mark.thorough
def test_the_demo_kills_a_driver_and_proves_that_nothing_was_lost(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    assert "killed by signal 9" in said
    _, _, second = said.partition("the next run reads that log")
    assert "resumes after entry" in second
    assert "commit(s) of a dead" in second, "the second run says what it found"
    assert "OK: 12,000 records read again, 0 missing, 0 duplicated" in second
    bids = folder / "lake" / "bronze" / "bids"
    assert table_at(bids).num_rows == 9_000 - 9
    entries = [
        json.loads(each["userMetadata"])["sequence"]
        for each in DeltaTable(str(bids)).history()
        if "userMetadata" in each
    ]
    assert sorted(entries) == [1, 2, 3, 4]
    assert f"rivermouth broker --dir {folder}/kafka --port " in said
