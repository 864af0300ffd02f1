"""Tasks for workers: a worker imports them by name, so they stand in a module of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivermouth.verify.beginning import NOTHING
from rivermouth.verify.recording import Attempt, Times
from rivermouth.verify.result import Kind, PipelineProof
from rivermouth.verify.sharing import Prove, Task


def proof_of(name: str, **found: Any) -> Attempt:
    """An attempt that names the process that made it, by its number of entries."""
    facts = {"entries": os.getpid(), "records": 0, "quarantined": 0, "superseded": None}
    return Attempt(PipelineProof(name, **{**facts, **found}), NOTHING, Times(0, 0))


@dataclass(frozen=True)
class Meeting:
    """Each proof waits until ``together`` processes are at work, each with one."""

    folder: Path
    together: int

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        (self.folder / str(os.getpid())).touch()
        progress(name, 1, 2)
        deadline = time.monotonic() + 60
        while len([*self.folder.iterdir()]) < self.together and time.monotonic() < deadline:
            time.sleep(0.01)
        print("what a library prints", flush=True)
        return proof_of(name)


@dataclass(frozen=True)
class Mortal:
    """In a worker it ends as ``how`` says; in the process ``home`` it waits for that and proves."""

    home: int
    how: str
    folder: Path

    def open(self) -> Prove:
        if os.getpid() != self.home and self.how == "does not open":
            self._end()
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        if os.getpid() != self.home:
            progress(name, 1, 2)
            self._end()
        deadline = time.monotonic() + 60
        while not (self.folder / "ended").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return proof_of(name)

    def _end(self) -> None:
        (self.folder / "ended").touch()
        if self.how == "killed":
            os.kill(os.getpid(), 9)
        raise ValueError("a fault of a worker")


@dataclass(frozen=True)
class Blind:
    """In a worker it finds what is not so; in the process ``home`` it waits for that."""

    home: int
    folder: Path

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        if os.getpid() != self.home:
            (self.folder / f"blind {name}").touch()
            return proof_of(name, counts={Kind.FAULT: 1})
        deadline = time.monotonic() + 60
        while not [*self.folder.iterdir()] and time.monotonic() < deadline:
            time.sleep(0.01)
        return proof_of(name)


@dataclass(frozen=True)
class Lingering:
    """The process ``home`` takes its time for its first pipeline, until a worker has no work."""

    home: int
    folder: Path

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        if os.getpid() != self.home:
            (self.folder / name).touch()
            return proof_of(name)
        deadline = time.monotonic() + 60
        while len([*self.folder.iterdir()]) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(1.5)  # longer than a worker takes to end
        return proof_of(name)


@dataclass(frozen=True)
class Deaf:
    """A worker ignores that it is to end; then the process ``home`` fails."""

    home: int
    folder: Path

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        if os.getpid() != self.home:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            (self.folder / "deaf").touch()
            time.sleep(600)
        deadline = time.monotonic() + 60
        while not (self.folder / "deaf").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        raise ValueError("a fault of this process")


@dataclass(frozen=True)
class Elsewhere:
    """In the process ``home`` it proves once a worker has proved a pipeline by ``task``."""

    task: Task
    home: int
    folder: Path

    def open(self) -> Prove:
        prove = self.task.open()
        return self._second(prove) if os.getpid() == self.home else self._first(prove)

    def _first(self, prove: Prove) -> Prove:
        def told(name: str, progress: Callable[[str, int, int], None]) -> Attempt:
            found = prove(name, progress)
            (self.folder / "proved").write_text(name)
            return found

        return told

    def _second(self, prove: Prove) -> Prove:
        def late(name: str, progress: Callable[[str, int, int], None]) -> Attempt:
            deadline = time.monotonic() + 60
            while not (self.folder / "proved").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            return prove(name, progress)

        return late


@dataclass(frozen=True)
class Refusing:
    """Raises for the pipeline ``name``, in whatever process."""

    name: str

    def open(self) -> Prove:
        return self.prove

    def prove(self, name: str, progress: Callable[[str, int, int], None]) -> Attempt:
        if name == self.name:
            raise ValueError(f"{name} cannot be proved")
        return proof_of(name)
