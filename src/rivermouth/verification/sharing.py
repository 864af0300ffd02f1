"""Several pipelines at once: this process proves one after the other, and workers take some off it.

It reads pickles from its standard input: first the ``Task``, then names of pipelines. It writes
pickles to its standard output: ``READY`` first, then for each name any number of ``Progressed`` and
one ``Attempt``. It ends at the first fault, and as soon as the input ends: then nobody waits for
it. Who asked then proves that pipeline and tells what is wrong.

A worker is a process of its own, because Python computes on one core. It starts when there is still
work after a second; most small configurations are done before that. A worker can only help. Its
word counts where it found nothing wrong; all else this process proves itself, also what a worker
had when it died. So only this process tells what is wrong, and only this one records.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple, Protocol

from rivermouth.verification.proofs.proof import Progress
from rivermouth.verification.recording import Attempt
from rivermouth.verification.result import PipelineProof

READY = "ready"


class Progressed(NamedTuple):
    """Offsets done and offsets in all, of a pipeline."""

    pipeline: str
    done: int
    total: int


def serve() -> None:
    """Work until the input ends. What a library prints goes to standard error."""
    # As an exception, so that what lies in temporary folders is deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with suppress(Exception):
            _answer(sys.stdin.buffer, answers)
    finally:
        os._exit(1)  # at a usual exit Python stumbles over the thread that listens


def send(pipe: IO[bytes], value: Any) -> None:
    """Write one pickle, at once."""
    pickle.dump(value, pipe, pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def _answer(orders: IO[bytes], answers: IO[bytes]) -> None:
    prove = pickle.load(orders).open()
    names = SimpleQueue[str]()
    threading.Thread(target=_listen, args=(orders, names), daemon=True).start()
    send(answers, READY)
    while True:
        name = names.get()
        send(answers, prove(name, lambda *facts: send(answers, Progressed(*facts))))


def _listen(orders: IO[bytes], names: SimpleQueue[str]) -> None:
    """Take names until the input ends, and then end this process, whatever it does."""
    with suppress(Exception):
        while True:
            names.put(pickle.load(orders))
    os.kill(os.getpid(), signal.SIGTERM)


Prove = Callable[[str, Progress], Attempt]
"""Verifies the pipeline of a name."""
Settle = Callable[[str, Attempt], PipelineProof]
"""Records what became of the pipeline of a name."""
START_AFTER_S = 1.0
_PATIENCE_S = 5.0


class Refused(Exception):
    """A worker found something wrong, and its word does not count."""


class Task(Protocol):
    """What is to be done with each name; it is pickled for each worker."""

    def open(self) -> Prove:
        """Called once in each process."""


def share(
    names: Sequence[str], task: Task, settle: Settle, progress: Progress, processes: int
) -> list[PipelineProof]:
    """The proofs of ``names``, in their order, by at most ``processes`` processes at once.

    ``settle`` and ``progress`` are called in this process, by one thread at a time; the last
    ``progress`` of a pipeline says that all is done. Raises what the task raises in this process;
    no worker is left then.
    """
    work = _Work(names, settle, progress)
    workers = [_Worker(task, work) for _ in range(min(processes, len(names)) - 1)]
    try:
        for each in workers:
            with suppress(RuntimeError):  # there may be too many threads
                each.start()
        prove = task.open()
        while (name := work.take_or_wait()) is not None:
            work.done(name, prove(name, work.progressed))
    finally:
        for each in workers:
            each.stop()
        for each in workers:
            each.gone()
    return [work.proofs[name] for name in names]


class _Work:
    """The names that nobody has taken, and the proofs of the others. Threads share it."""

    def __init__(self, names: Sequence[str], settle: Settle, progress: Progress) -> None:
        self.proofs: dict[str, PipelineProof] = {}
        self._left = deque(names)
        self._given_back = list[str]()
        self._under_way = 0
        self._changed = threading.Condition()
        self._settle, self._progress = settle, progress

    def take(self) -> str | None:
        """The next name for a worker; None: there is none."""
        with self._changed:
            if not self._left:
                return None
            self._under_way += 1
            return self._left.popleft()

    def take_or_wait(self) -> str | None:
        """The next name for this process, which waits for what workers may give back."""
        with self._changed:
            while not self._given_back and not self._left and self._under_way:
                self._changed.wait()
            if self._given_back:
                self._under_way += 1
                return self._given_back.pop()
            return self.take()

    def done(self, name: str, attempt: Attempt) -> None:
        """A name that was taken is proved, whatever was found."""
        with self._changed:
            self.proofs[name] = self._settle(name, attempt)
            self._progress(name, 1, 1)
            self._under_way -= 1
            self._changed.notify_all()

    def give_back(self, name: str) -> None:
        """A name that a worker took is to be proved by this process."""
        with self._changed:
            self._given_back.append(name)
            self._under_way -= 1
            self._changed.notify_all()

    def progressed(self, pipeline: str, done: int, total: int) -> None:
        with self._changed:
            self._progress(pipeline, done, total)


def _started(folder: str) -> subprocess.Popen[bytes]:
    """A process that serves, with its temporary files in ``folder``.

    It imports from where this one does, however that was started.
    """
    places = [*map(str, sys.path)]
    code = f"import sys; sys.path[:] = {places!r}; from {serve.__module__} import serve; serve()"
    # The worker inherits what its thread blocks: Ctrl-C is for this process, which then ends it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    command = [sys.executable, "-c", code]
    environ = {**os.environ, "TMPDIR": folder}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
    with suppress(Exception):
        process.communicate()


class _Worker(threading.Thread):
    """Hands names to a process and takes its proofs, until there is no name or no process."""

    def __init__(self, task: Task, work: _Work) -> None:
        super().__init__(daemon=True)
        self._task, self._work = task, work
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """See ``Thread``. Whatever fails, the first process does the work."""
        if self._over.wait(START_AFTER_S):
            return
        # Its temporary files go with it, also when it is killed.
        with suppress(Exception), TemporaryDirectory(prefix="rivermouth-verify-") as folder:
            self._process = _started(folder)
            try:
                self._serve(self._process)
            finally:
                _end(self._process)

    def stop(self) -> None:
        """Let the process end, whatever it does."""
        self._over.set()
        if self._process is not None:
            self._process.terminate()

    def gone(self) -> None:
        """Wait until the process has ended; kill it where it does not."""
        if self.ident is None:
            return
        self.join(_PATIENCE_S)
        if self._process is not None:
            self._process.kill()
        self.join()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        send(process.stdin, self._task)
        if self._receive(process) != READY:
            return
        while not self._over.is_set() and (name := self._work.take()) is not None:
            try:
                attempt = self._attempt(process, name)
                self._work.done(name, attempt)
            except Refused:
                self._work.give_back(name)
            except Exception:
                _end(process)  # else it might go on with what this process is to do now
                self._work.give_back(name)
                return

    def _attempt(self, process: subprocess.Popen[bytes], name: str) -> Attempt:
        """What the process proves. Raises Refused where it found anything wrong."""
        assert process.stdin is not None
        send(process.stdin, name)
        while isinstance(found := self._receive(process), Progressed):
            self._work.progressed(*found)
        attempt: Attempt = found
        if attempt.proof.name != name or attempt.proof.found:
            raise Refused
        return attempt

    def _receive(self, process: subprocess.Popen[bytes]) -> Any:
        assert process.stdout is not None
        return pickle.load(process.stdout)
