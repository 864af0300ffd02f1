"""Ending from outside: the first signal asks, a second Ctrl-C insists."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"


class Stop:
    """Sets ``event`` on SIGTERM or Ctrl-C; a second Ctrl-C ends the process at once.

    For a run, ending at once is safe: a batch is committed or it is not, and the next start
    reads which. ``asked`` and ``insisted`` are said then, on standard error.
    """

    def __init__(self, asked: str, insisted: str = "aborted") -> None:
        self.event = threading.Event()
        self._asked, self._insisted = asked, insisted

    def listen(self) -> None:
        """Take over both signals. Spark takes SIGINT for itself at its start: call again then."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT and self.event.is_set():
            _write(self._insisted + (_SHOW_CURSOR if sys.stderr.isatty() else ""))
            os._exit(128 + number)
        if not self.event.is_set():
            _write(self._asked)
        self.event.set()


def _write(text: str) -> None:
    """Straight to the descriptor: a handler may interrupt a print to the same stream."""
    os.write(2, f"\n{text}\n".encode())
