"""The Python of a run: one that cannot carry out a batch is told at once, and what Spark's workers
load is what the wheel's extra installs.

The wheel itself, in an environment that has nothing else, is tried by ``make wheel-demo``. This
tells sooner what the packages of the tests would hide.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from pyspark.sql import SparkSession

from tests.faults.outcomes import refusal, went_well
from tests.kafka import worker_modules
from tests.lake import Lake, append_pipeline, bid, retrying
from tests.wheel import requirements

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


def closure(extra: str) -> set[str]:
    """The distributions that an installation with the extra brings, with all that they ask for."""
    waiting = [Requirement(each) for each in requirements()]
    found = set[str]()
    for each in waiting:
        asked = {extra, *each.extras} if each.name not in found else ()
        if any(each.marker is None or each.marker.evaluate({"extra": x}) for x in asked):
            found.add(each.name)
            lines = importlib.metadata.requires(each.name) or []
            waiting += [Requirement(line) for line in lines if "extra ==" not in line]
    return {importlib.metadata.metadata(each)["Name"] for each in found}


def distributions() -> dict[str, set[str]]:
    """Whose each module is that is installed here."""
    found: dict[str, set[str]] = {}
    for each in importlib.metadata.distributions():
        for file in each.files or ():
            top = file.parts[0].partition(".")[0]
            found.setdefault(top, set()).add(each.metadata["Name"])
    return found


def at_once() -> set[str]:
    """What an interpreter loads before it is told anything, as packages may ask it to."""
    command = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    return {*subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()}


@pytest.mark.thorough
def test_a_worker_loads_nothing_that_the_extra_does_not_install(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("loaded")
    lake.configure(p=append_pipeline("loaded"))
    lake.produce("loaded", [(None, bid(1), 0), (None, b"{oops", 0)])
    went_well(lake.run(rivermouth_spark, "p"))

    slots = rivermouth_spark.sparkContext.defaultParallelism
    asked = rivermouth_spark.range(0, slots, 1, slots).mapInArrow(
        worker_modules.names, "name STRING"
    )
    loaded = {row["name"] for row in asked.collect()}

    assert "rivermouth" in loaded, "these are the workers that have decoded"
    installed, whose = closure("local"), distributions()
    owners = {name: whose[name] for name in loaded - at_once() if name in whose}
    assert {name for name, own in owners.items() if not own & {*installed, "rivermouth"}} == set()
