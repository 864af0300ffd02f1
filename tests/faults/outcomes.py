"""What came of a run, said in one word by a test."""

from __future__ import annotations

from rivermouth.config import load
from rivermouth.errors import RivermouthError
from rivermouth.verify import verify
from tests.lake import Heard, Lake


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
