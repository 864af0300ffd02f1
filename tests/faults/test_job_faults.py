"""A continuous job that loses one of its pipelines: it ends, so that it is run again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.lake import Lake, impatient, retrying
from tests.processes import said_by, started
from tests.waiting import wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

INGEST = Path(__file__).parents[2] / "jobs" / "ingest.py"


def test_a_job_ends_as_a_whole_when_one_pipeline_has_given_up(lake: Lake) -> None:
    for name in ("job_gone", "job_stays"):
        lake.topic(name)
        lake.bids(name)
    lake.configure(gone=retrying(impatient("job_gone"), 3), stays=impatient("job_stays"))
    words = ["--continuous", f"--config={lake.file}", f"--local={lake.warehouse}"]
    environ = {**os.environ, "RIVERMOUTH_SCRATCH": str(lake.scratch)}
    with started([sys.executable, str(INGEST), *words], environ) as process:
        for name in ("job_gone", "job_stays"):
            wait_for_rows(lake.path(f"bronze.{name}"), 5)
        lake.delete_topic("job_gone")
        said = said_by(process)

    assert process.returncode == 5, said
    assert "gone: tried again in" in said
    assert "gone: gave up; the other pipelines end after their current batch" in said
    assert "stays: OK, 5 records in 1 commit(s)" in said
    assert "gone: FAILED RM302" in said
