"""Several pipelines at once: every one is proved, whatever becomes of the workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermouth.verify.sharing import share
from tests.processes import started
from tests.unit.verify.sharing_tasks import Meeting, Mortal, Refusing
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

NAMES = ["a", "b", "c", "d", "e"]


def silent(pipeline: str, done: int, total: int) -> None:
    """Report nothing."""


def children() -> set[int]:
    """The Python processes that this one has started and that have not ended."""
    found = [line.split() for line in listed("ppid=,pid=,stat=,comm=")]
    mine = [each for each in found if int(each[0]) == os.getpid() and each[3].startswith("python")]
    return {int(pid) for _, pid, stat, _ in mine if not stat.startswith("Z")}


def listed(columns: str) -> list[str]:
    """Every process of this machine, a line for each."""
    command = ["ps", "-A", "-o", columns]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_so_many_processes_work_at_once_and_the_proofs_keep_their_order(
    tmp_path: Path, processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, int, int]] = []
    before = children()
    found = share(NAMES, Meeting(tmp_path, processes), lambda *facts: told.append(facts), processes)
    assert [each.name for each in found] == NAMES
    assert len({each.entries for each in found}) == processes
    assert sorted(told) == [(name, 1, 2) for name in NAMES]
    assert children() == before, "a worker is left"
    assert capfd.readouterr().out.count("what a library prints") == [
        each.entries for each in found
    ].count(os.getpid()), "a worker leaves standard output alone"


def test_no_more_workers_are_started_than_there_are_pipelines(tmp_path: Path) -> None:
    [found] = share(["a"], Meeting(tmp_path, 1), silent, 8)
    assert found.entries == os.getpid()
    assert share([], Meeting(tmp_path, 1), silent, 8) == []


@pytest.mark.parametrize("how", ["killed", "raises", "does not open"])
def test_what_a_worker_had_when_it_died_is_proved_by_this_process(tmp_path: Path, how: str) -> None:
    found = share(NAMES, Mortal(os.getpid(), how, tmp_path), silent, 2)
    assert [(each.name, each.entries) for each in found] == [(each, os.getpid()) for each in NAMES]


def test_what_cannot_be_proved_is_told_and_no_worker_is_left() -> None:
    before = children()
    with pytest.raises(ValueError, match="c cannot be proved"):
        share(NAMES, Refusing("c"), silent, 3)
    assert children() == before


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from rivermouth.verify.sharing import share
from tests.unit.verify.sharing_tasks import Meeting
share(["a", "b"], Meeting(Path({str(tmp_path)!r}), 3), lambda *facts: None, 2)
"""

    def at_work() -> set[str]:
        return {each.name for each in tmp_path.iterdir()}

    with started([sys.executable, "-c", code], os.environ) as process:
        wait_for(lambda: len(at_work()) == 2)
        both = at_work()
        process.kill()
        (tmp_path / "a third one").touch()
        process.wait()
        wait_for(lambda: not both & alive())


def alive() -> set[str]:
    """The numbers of all processes but those that have ended and nobody has asked for."""
    return {pid for pid, stat in map(str.split, listed("pid=,stat=")) if not stat.startswith("Z")}
