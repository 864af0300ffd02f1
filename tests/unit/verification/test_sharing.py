"""Several pipelines at once: every one is proved, whatever becomes of the workers."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rivermouth.verification import sharing
from rivermouth.verification.recording import Attempt
from rivermouth.verification.result import PipelineProof
from rivermouth.verification.sharing import Prove, share
from tests.processes import listed, started
from tests.unit.verification.sharing_tasks import (
    Closed,
    Divided,
    Meeting,
    blind,
    deaf,
    failing,
    killed,
    lingering,
    proof_of,
    quick,
    refusing,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.unit

NAMES = ["a", "b", "c", "d", "e"]


def silent(pipeline: str, done: int, total: int) -> None:
    """Report nothing."""


def children() -> set[int]:
    """The Python processes that this one has started and that have not ended."""
    mine = [each for each in listed("ppid", "stat", "comm") if int(each[1]) == os.getpid()]
    return {int(pid) for pid, _, stat, name in mine if "python" in name and stat[0] != "Z"}


def settle(name: str, attempt: Attempt) -> PipelineProof:
    """Keep the proof of the right pipeline."""
    assert attempt.proof.name == name
    return attempt.proof


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "START_AFTER_S", 0)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_so_many_processes_work_at_once_and_the_proofs_keep_their_order(
    tmp_path: Path, processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[str, int, int]] = []
    before = children()
    task = Meeting(tmp_path, processes)
    found = share(NAMES, task, settle, lambda *facts: told.append(facts), processes)
    assert [each.name for each in found] == NAMES
    assert len({each.entries for each in found}) == processes
    assert sorted(told) == sorted([(name, n, m) for name in NAMES for n, m in ((1, 2), (1, 1))])
    assert all(told.index((name, 1, 2)) < told.index((name, 1, 1)) for name in NAMES)
    assert children() == before, "a worker is left"
    here = [each.entries for each in found].count(os.getpid())
    said = capfd.readouterr().out.count("what a library prints")
    assert said == here, "a worker leaves standard output alone"


@pytest.mark.parametrize(
    ("names", "processes", "after_s", "workers"),
    [(["a"], 8, 0, 0), ([], 8, 0, 0), (NAMES, 1, 0, 0), (NAMES, 3, 60, 0), (NAMES, 3, 0, 2)],
)
def test_workers_are_started_where_there_is_work_for_them(
    monkeypatch: pytest.MonkeyPatch, names: list[str], processes: int, after_s: float, workers: int
) -> None:
    folders: list[str] = []

    def started(folder: str) -> None:
        folders.append(folder)
        raise OSError("no more processes")

    class Task:
        def open(self) -> Prove:
            deadline = time.monotonic() + (60 if workers else 0.2)
            while len(folders) < max(1, workers) and time.monotonic() < deadline:
                time.sleep(0.01)
            return lambda name, progress: proof_of(name)

    monkeypatch.setattr(sharing, "START_AFTER_S", after_s)
    monkeypatch.setattr(sharing, "_started", started)
    assert [each.name for each in share(names, Task(), settle, silent, processes)] == names
    assert len(folders) == workers
    assert not any(Path(each).exists() for each in folders)


def test_a_worker_without_work_ends_in_silence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first process proves the last pipeline, while a worker has nothing left to do."""
    share(NAMES, Divided(os.getpid(), tmp_path, quick, 4, lingering), settle, silent, 2)
    assert [*tmp_path.iterdir()], "no worker had any work"
    assert capfd.readouterr().err == ""


def test_a_worker_that_does_not_listen_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_PATIENCE_S", 0.2)
    before = children()
    with pytest.raises(ValueError, match="a fault of this process"):
        share(NAMES, Divided(os.getpid(), tmp_path, deaf, here=refusing), settle, silent, 2)
    assert children() == before


@pytest.mark.parametrize(
    "task",
    [
        Divided(os.getpid(), Path(), killed),
        Divided(os.getpid(), Path(), failing),
        Closed(os.getpid(), Path(), quick),
    ],
    ids=["killed", "raises", "does not open"],
)
def test_what_a_worker_had_when_it_died_is_proved_by_this_process(
    tmp_path: Path, task: Divided
) -> None:
    found = share(NAMES, replace(task, folder=tmp_path), settle, silent, 2)
    assert [(each.name, each.entries) for each in found] == [(each, os.getpid()) for each in NAMES]
    assert [*tmp_path.iterdir()], "no worker died"


def test_what_a_worker_finds_wrong_is_proved_again_by_this_process(tmp_path: Path) -> None:
    found = share(NAMES, Divided(os.getpid(), tmp_path, blind), settle, silent, 2)
    assert [(each.found, each.entries) for each in found] == [(0, os.getpid())] * len(NAMES)
    assert [*tmp_path.iterdir()], "no worker was blind"


def test_a_task_that_cannot_be_told_is_done_by_this_process() -> None:
    class Task:
        def open(self) -> Prove:
            return prove

    def prove(name: str, progress: object) -> Attempt:
        time.sleep(0.5)
        return proof_of(name)

    assert [each.name for each in share(NAMES, Task(), settle, silent, 2)] == NAMES


def test_a_proof_that_cannot_be_kept_ends_it_and_leaves_no_worker(tmp_path: Path) -> None:
    def full(name: str, attempt: Attempt) -> PipelineProof:
        raise OSError("no space is left")

    before = children()
    with pytest.raises(OSError, match="no space"):
        share(NAMES, Meeting(tmp_path, 2), full, silent, 2)
    assert children() == before


@pytest.mark.thorough
def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from rivermouth.verification.sharing import share
from tests.unit.verification.sharing_tasks import Meeting
share(["a", "b"], Meeting(Path({str(tmp_path)!r}), 3), print, lambda *facts: None, 2)
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
    return {pid for pid, stat in listed("stat") if stat[0] != "Z"}
