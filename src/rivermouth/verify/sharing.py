"""Several pipelines at once: this process proves one after the other, and workers take some off it.

A worker is a process of its own, because Python computes on one core. It takes about a second to
start; by then this process has proved what is small. A worker that dies costs time and nothing
else: this process then proves the pipeline that the worker had.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Protocol

from rivermouth.verify.result import PipelineProof
from rivermouth.verify.worker import READY, Progressed, serve

Progress = Callable[[str, int, int], None]
Prove = Callable[[str, Progress], PipelineProof]
"""Verifies the pipeline of a name."""
_PATIENCE_S = 5.0


class Task(Protocol):
    """What is to be done with each name; it is pickled for each worker."""

    def open(self) -> Prove:
        """Called once in each process."""


def share(
    names: Sequence[str], task: Task, progress: Progress, processes: int
) -> list[PipelineProof]:
    """The proofs of ``names``, in their order, by at most ``processes`` processes at once.

    ``progress`` is called by one thread at a time. Raises what the task raises in this process; no
    worker is left then.
    """
    work = _Work(names)
    alone = threading.Lock()

    def tell(pipeline: str, done: int, total: int) -> None:
        with alone:
            progress(pipeline, done, total)

    with ExitStack() as workers:
        for _ in range(min(processes, len(names)) - 1):
            worker = _Worker(task, work, tell)
            workers.callback(worker.end)
            worker.start()
        prove = task.open()
        while (name := work.take(may_come_back=True)) is not None:
            work.done(name, prove(name, tell))
    return [work.proofs[name] for name in names]


class _Work:
    """The names that nobody has taken, and the proofs of the others. Threads share it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.proofs: dict[str, PipelineProof] = {}
        self._left = deque(names)
        self._under_way = 0
        self._changed = threading.Condition()

    def take(self, *, may_come_back: bool = False) -> str | None:
        """The next name; None: there is none. ``may_come_back``: waits for what others have."""
        with self._changed:
            while may_come_back and not self._left and self._under_way:
                self._changed.wait()
            if not self._left:
                return None
            self._under_way += 1
            return self._left.popleft()

    def done(self, name: str, proof: PipelineProof | None) -> None:
        """A name that was taken is proved; None: it is not, and is to be taken again."""
        with self._changed:
            self._under_way -= 1
            if proof is None:
                self._left.append(name)
            else:
                self.proofs[name] = proof
            self._changed.notify_all()


def _started() -> subprocess.Popen[bytes]:
    """A process that serves. It imports from where this one does, however that was started."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {serve.__module__} import serve; serve()"
    # The worker inherits what is blocked: Ctrl-C is for this process, which then ends its workers.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        command = [sys.executable, "-c", code]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker(threading.Thread):
    """Hands names to a process and takes its proofs, until there is no name or no process."""

    def __init__(self, task: Task, work: _Work, progress: Progress) -> None:
        super().__init__(daemon=True)
        self._task, self._work, self._progress = task, work, progress
        self._process = _started()

    def run(self) -> None:
        """See ``Thread``."""
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            self._send(self._task)
            if self._receive() == READY:
                while (name := self._work.take()) is not None:
                    proof = None
                    try:
                        proof = self._proof(name)
                    finally:
                        self._work.done(name, proof)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self.join()
        self._process.communicate()

    def _proof(self, name: str) -> PipelineProof:
        self._send(name)
        while isinstance(found := self._receive(), Progressed):
            self._progress(*found)
        assert isinstance(found, PipelineProof)
        return found

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        return pickle.load(self._process.stdout)
