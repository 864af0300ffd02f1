"""The calls of Python as a notebook makes them, on a real broker: in a session of the user's own,
in one that the call starts and ends, and interrupted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from pyspark.sql import SparkSession

import rivermouth
from rivermouth import CommitReport
from tests.commands import scratch_in
from tests.faults.outcomes import went_well
from tests.lake import Heard, Lake, append_pipeline, bid

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = """
import rivermouth

report = rivermouth.ingest("rivermouth.yml", spark, select=["calls"])
status = rivermouth.status("rivermouth.yml")
proof = rivermouth.verify("rivermouth.yml", select="calls")
"""

SCRIPT = """
import signal
import rivermouth

for turn in (1, 2):
    print(rivermouth.ingest("rivermouth.yml"))
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(rivermouth.status("rivermouth.yml").pipelines[0].state.value)
print(rivermouth.verify("rivermouth.yml").ok)
"""


def test_cells_of_a_notebook_ingest_look_and_prove_in_its_own_session(
    lake: Lake,
    rivermouth_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lake.configure(calls=append_pipeline("calls"), gone=append_pipeline("calls-gone"))
    lake.topic("calls", 2)
    lake.produce("calls", [(None, bid(i, i), i % 2) for i in range(30)] + [(None, b"{oops", 0)])
    monkeypatch.chdir(lake.folder)
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", os.fspath(lake.scratch))
    handled = signal.getsignal(signal.SIGINT)
    cells = {"spark": rivermouth_spark}

    exec(NOTEBOOK, cells)

    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is handled
    report, status, proof = (cells[each] for each in ("report", "status", "proof"))
    assert isinstance(report, rivermouth.Report)
    [done] = report.pipelines
    assert (done.applied, done.quarantined) == (30, 1)
    assert str(report).splitlines()[-1] == "OK: 30 records"
    assert isinstance(status, rivermouth.Status)
    states = {each.name: each.state.value for each in status.pipelines}
    assert states == {"calls": "OK", "gone": "UNKNOWN"}
    assert isinstance(proof, rivermouth.Verification)
    assert proof.ok
    assert str(proof).endswith("OK: 31 records read again, 0 missing, 0 duplicated")
    assert len(lake.rows("bronze.calls")) == 30
    assert rivermouth_spark.range(3).count() == 3, "the session goes on"

    both = rivermouth.ingest("rivermouth.yml", rivermouth_spark)

    assert [each.error.code if each.error else "" for each in both.pipelines] == ["", "RM302"]
    assert both.exit_code == 5
    assert "FAILED gone\n  RM302" in str(both)


class _Then(Heard):
    """Keeps what it hears, and interrupts the main thread when records were committed."""

    def committed(self, report: CommitReport) -> None:
        super().committed(report)
        if report.applied:
            main = threading.main_thread().ident
            assert main is not None
            signal.pthread_kill(main, signal.SIGINT)


def test_a_cell_without_end_that_is_interrupted_ends_its_pipelines(
    lake: Lake, rivermouth_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.configure(cut=append_pipeline("calls-cut"))
    lake.topic("calls-cut")
    lake.produce("calls-cut", [(None, bid(1), 0)])
    monkeypatch.setenv("RIVERMOUTH_SCRATCH", os.fspath(lake.scratch))
    heard = _Then()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            rivermouth.ingest(lake.file, rivermouth_spark, continuous=True, listener=heard)
    finally:
        signal.signal(signal.SIGINT, before)

    went_well(heard)
    assert rivermouth.ingest(lake.file, rivermouth_spark).pipelines[0].commits == 0
    assert len(lake.rows("bronze.calls_cut")) == 1


@pytest.mark.thorough
def test_a_script_without_a_session_gets_one_for_each_call_that_ends_with_it(lake: Lake) -> None:
    lake.configure(alone=append_pipeline("calls-alone"))
    lake.topic("calls-alone")
    lake.produce("calls-alone", [(None, bid(1), 0), (None, bid(2), 0)])

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=lake.folder,
        env={**os.environ, **scratch_in(lake.scratch)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith("alone: ")] == [
        "OK: 2 records",
        "OK: 0 records",
        "OK",
        "True",
    ]
