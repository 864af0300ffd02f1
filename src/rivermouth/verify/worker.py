"""A worker: the process that verifies pipelines for another one.

It reads pickles from its standard input: first the ``Task``, then names of pipelines, until the
input ends. It writes pickles to its standard output: ``READY`` first, then for each name any number
of ``Progressed`` and one ``PipelineProof``. It ends at the first fault: who asked then proves that
pipeline and tells what is wrong.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO, NamedTuple

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
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            _answer(sys.stdin.buffer, answers)
        except Exception:
            sys.exit(1)


def _answer(orders: BinaryIO, answers: BinaryIO) -> None:
    def send(value: Any) -> None:
        pickle.dump(value, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()

    prove = pickle.load(orders).open()
    send(READY)
    while True:
        try:
            name = pickle.load(orders)
        except EOFError:
            return
        send(prove(name, lambda *facts: send(Progressed(*facts))))
