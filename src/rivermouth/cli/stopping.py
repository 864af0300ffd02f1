"""Stopping by signals: the first one asks, a second Ctrl-C aborts."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

_SHOW_CURSOR = "\x1b[?25h"


class Stop:
    """Sets ``event`` on SIGTERM or Ctrl-C; a second Ctrl-C ends the process at once.

    To abort a run is safe: a batch is either committed or not, and the next start reads from
    the log which. The texts ``asked`` and ``aborted`` go to standard error.
    """

    def __init__(self, asked: str, aborted: str = "aborted") -> None:
        self.event = threading.Event()
        self._asked, self._aborted = asked, aborted

    def listen(self) -> None:
        """Handle both signals. Call it again after the start of Spark, which takes over SIGINT."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT and self.event.is_set():
            _write(self._aborted + (_SHOW_CURSOR if sys.stderr.isatty() else ""))
            os._exit(128 + number)
        if not self.event.is_set():
            _write(self._asked)
        self.event.set()


def _write(text: str) -> None:
    """Write to the descriptor: the handler may have interrupted a print to the same stream."""
    os.write(2, f"\n{text}\n".encode())
