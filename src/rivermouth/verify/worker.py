"""A worker: the process that verifies pipelines for another one.

It reads pickles from its standard input: first the ``Task``, then names of pipelines. It writes
pickles to its standard output: ``READY`` first, then for each name any number of ``Progressed`` and
one ``Attempt``. It ends at the first fault, and as soon as the input ends: then nobody waits for
it. Who asked then proves that pipeline and tells what is wrong.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, NamedTuple

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
