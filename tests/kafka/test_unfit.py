"""A Python that cannot carry out a batch ends the run at once, and says what is wrong where."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.outcomes import refusal
from tests.lake import Lake, append_pipeline, bid, retrying

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Damage = Callable[[pytest.MonkeyPatch, SparkSession, Path], None]


def no_pandas(patch: pytest.MonkeyPatch, spark: SparkSession, folder: Path) -> None:
    """As in an environment without it."""
    del spark, folder
    patch.setitem(sys.modules, "pandas", None)


def another_python(patch: pytest.MonkeyPatch, spark: SparkSession, folder: Path) -> None:
    """As in a session with another Python for its workers: this one under another number."""
    start = folder / "start.py"
    start.write_text(
        "import runpy, sys\n"
        "sys.version_info = type('Version', (tuple,), {'major': 3})((3, 9, 18))\n"
        "_, _, module, *sys.argv[1:] = sys.argv\n"
        "runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
    )
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{start}" "$@"\n')
    python.chmod(0o755)
    patch.setattr(spark.sparkContext, "pythonExec", str(python))


@pytest.mark.parametrize(
    ("damage", "code", "found"),
    [
        (no_pandas, "RM206", "[PACKAGE_NOT_INSTALLED] Pandas >= "),
        (another_python, "RM210", "Python in worker has different version: 3.9 than that in "),
    ],
    ids=["no pandas", "another Python"],
)
def test_a_batch_that_cannot_be_carried_out_here_ends_the_run_at_once(
    lake: Lake,
    rivermouth_spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    damage: Damage,
    code: str,
    found: str,
) -> None:
    topic = f"unfit-{code}"
    lake.topic(topic)
    lake.configure(p=retrying(append_pipeline(topic), 2))
    lake.produce(topic, [(None, bid(1), 0)])
    damage(monkeypatch, rivermouth_spark, lake.folder)

    heard = lake.run(rivermouth_spark, "p")

    error = refusal(heard)
    assert (error.code, error.exit_code, error.where) == (code, 2, "p")
    assert error.found.startswith(found)
    assert heard.retries == []
