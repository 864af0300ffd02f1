"""What came of a run, said in one word by a test."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermouth.config import load
from rivermouth.errors import RivermouthError
from rivermouth.verification import Kind, verify
from tests.lake import Heard, Lake
from tests.processes import said_by


def went_well(heard: Heard) -> Heard:
    """All pipelines ended well; gives the same back."""
    assert [str(each.error) for each in heard.ends if each.error] == []
    return heard


def refusal(heard: Heard) -> RivermouthError:
    """The error that the only pipeline ended with."""
    [report] = heard.ends
    assert report.error is not None, "the pipeline was expected to stop"
    return report.error


def applied(heard: Heard) -> int:
    return sum(each.applied for each in heard.commits)


def problems(lake: Lake) -> tuple[str, ...]:
    """What ``verify``, which shares no code with the writer, finds wrong."""
    return tuple(line for proof in verify(load(lake.file)).pipelines for line in proof.problems)


def check_proved(lake: Lake, records: int) -> None:
    """Every pipeline is proven, and the ranges of all hold so many records."""
    proofs = verify(load(lake.file)).pipelines
    assert [line for each in proofs for line in each.problems] == []
    assert all(each.ok for each in proofs)
    assert sum(each.records for each in proofs) == records


def check_sound(lake: Lake) -> None:
    """What a driver that was killed has left is sound."""
    [proof] = verify(load(lake.file)).pipelines
    behind = {Kind.OFFSETS_TABLE}  # the next start brings it up to date
    assert {kind: n for kind, n in proof.counts.items() if n and kind not in behind} == {}


def check_finishes(lake: Lake, spark: SparkSession, pipeline: str, records: int) -> None:
    """A driver that is let finish does so, and ``verify`` proves all that was produced."""
    with lake.driver(pipeline, spark=spark) as driver:
        said = said_by(driver)
    assert driver.returncode == 0, said

    [proof] = verify(load(lake.file), None).as_dict()["pipelines"]
    assert proof["ok"], proof
    assert proof["records"] == records > 0
