"""The benchmark of endurance, with a thousandth of the records: it runs, and tells all figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.thorough,
]

BENCH = Path(__file__).parents[2] / "bench" / "endurance.py"
FIGURES = [
    "start_s_1k",
    "start_s_100k",
    "start_mb_100k",
    "entry_bytes_2000",
    "batch_ratio_2000",
    "bad_record_ratio",
    "verify_mb",
    "verify_s_per_m",
]


def test_a_small_run_ends_with_all_figures_in_order() -> None:
    command = [sys.executable, str(BENCH), "--small"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert [*figures] == FIGURES
    assert all(each > 0 for each in figures.values())
