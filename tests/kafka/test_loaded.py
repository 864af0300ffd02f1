"""What Spark's Python workers load to carry out a batch is what the wheel's extra installs.

The wheel itself, in an environment that has nothing else, is tried by ``make wheel-demo``. This
tells sooner what the packages of the tests would hide.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from pyspark.sql import SparkSession

from tests.kafka.in_worker import modules
from tests.lake import Lake, append_pipeline, bid
from tests.wheel import requirements

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


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
    told = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    return {*subprocess.run(told, check=True, capture_output=True, text=True).stdout.split()}


@pytest.mark.thorough
def test_a_worker_loads_nothing_that_the_extra_does_not_install(
    lake: Lake, rivermouth_spark: SparkSession
) -> None:
    lake.topic("loaded")
    lake.configure(p=append_pipeline("loaded"))
    lake.produce("loaded", [(None, bid(1), 0), (None, b"{oops", 0)])
    heard = lake.run(rivermouth_spark, "p")
    assert [each.error for each in heard.ends] == [None]

    slots = rivermouth_spark.sparkContext.defaultParallelism
    asked = rivermouth_spark.range(0, slots, 1, slots).mapInArrow(modules, "name STRING")
    loaded = {row["name"] for row in asked.collect()}

    assert "rivermouth" in loaded, "these are the workers that have decoded"
    installed, whose = closure("local"), distributions()
    owners = {name: whose[name] for name in loaded - at_once() if name in whose}
    assert {name for name, own in owners.items() if not own & {*installed, "rivermouth"}} == set()
