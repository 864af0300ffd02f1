"""Tasks for workers: a worker imports them by name, so they stand in a module of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivermouth.verification.proofs.proof import Progress
from rivermouth.verification.proved import Recording
from rivermouth.verification.recording import Attempt
from rivermouth.verification.result import Kind, PipelineProof
from rivermouth.verification.sharing import Prove, Task
from tests.waiting import wait_for


def proof_of(name: str, **found: Any) -> Attempt:
    """An attempt that names the process that made it, by its number of entries."""
    facts = {"entries": os.getpid(), "records": 0, "quarantined": 0, "superseded": None}
    return Attempt(PipelineProof(name, **{**facts, **found}), Recording(), 0, 0)


@dataclass(frozen=True)
class Meeting:
    """Each proof waits until ``together`` processes are at work, each with one."""

    folder: Path
    together: int

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Progress) -> Attempt:
        (self.folder / str(os.getpid())).touch()
        progress(name, 1, 2)
        wait_for(lambda: len([*self.folder.iterdir()]) >= self.together)
        print("what a library prints", flush=True)
        return proof_of(name)


@dataclass(frozen=True)
class Divided:
    """What a worker does, and what the process ``home`` does once workers left ``marks`` marks."""

    home: int
    folder: Path
    abroad: Callable[[Divided, str], Attempt]
    marks: int = 1
    here: Callable[[str], Attempt] = proof_of

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Progress) -> Attempt:
        if os.getpid() != self.home:
            progress(name, 1, 2)
            return self.abroad(self, name)
        wait_for(lambda: len([*self.folder.iterdir()]) >= self.marks)
        return self.here(name)

    def mark(self, name: str) -> None:
        """Leave a mark for the process ``home``."""
        (self.folder / name).touch()


def killed(task: Divided, name: str) -> Attempt:
    """The worker is killed."""
    task.mark(name)
    os.kill(os.getpid(), signal.SIGKILL)
    return proof_of(name)


def failing(task: Divided, name: str) -> Attempt:
    """The worker fails."""
    task.mark(name)
    raise ValueError("a fault of a worker")


def blind(task: Divided, name: str) -> Attempt:
    """The worker finds what is not so."""
    task.mark(name)
    return proof_of(name, counts={Kind.FAULT: 1})


def quick(task: Divided, name: str) -> Attempt:
    """The worker proves it."""
    task.mark(name)
    return proof_of(name)


def deaf(task: Divided, name: str) -> Attempt:
    """The worker ignores that it is to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    task.mark(name)
    time.sleep(600)
    return proof_of(name)


def lingering(name: str) -> Attempt:
    """The first process takes longer than a worker takes to end."""
    time.sleep(1.5)
    return proof_of(name)


def refusing(name: str) -> Attempt:
    """The first process fails."""
    raise ValueError("a fault of this process")


@dataclass(frozen=True)
class Closed(Divided):
    """A worker cannot open it."""

    def open(self) -> Prove:
        if os.getpid() != self.home:
            self.mark("closed")
            raise ValueError("a fault of a worker")
        return self.prove


@dataclass(frozen=True)
class Elsewhere:
    """In the process ``home`` it proves once a worker has proved a pipeline by ``task``."""

    task: Task
    home: int
    folder: Path

    def open(self) -> Prove:
        prove, proved = self.task.open(), self.folder / "proved"

        def told(name: str, progress: Progress) -> Attempt:
            if os.getpid() == self.home:
                wait_for(proved.exists)
            found = prove(name, progress)
            proved.touch()
            return found

        return told
