"""Looks at the status beside a run, and tells it to whoever wants to know."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from rivermouth.operate.status import Status

_LOG = logging.getLogger(__name__)
EVERY_S = 15.0


class Observing:
    """A context manager for the time of a run: looks every ``every_s`` seconds (None: not
    meanwhile), and once more at its end. A look that fails does not stop the run.
    """

    def __init__(
        self,
        look: Callable[[], Status],
        tell: Sequence[Callable[[Status], object]],
        every_s: float | None = EVERY_S,
    ) -> None:
        self._look, self._tell, self._every_s = look, tell, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._observe, name="observing", daemon=True)

    def __enter__(self) -> Observing:
        if self._tell and self._every_s is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._once()

    def _observe(self) -> None:
        while not self._over.wait(self._every_s):
            self._once()

    def _once(self) -> None:
        if not self._tell:
            return
        try:
            found = self._look()
            for each in self._tell:
                each(found)
        except Exception as fault:
            _LOG.warning("the status could not be told: %r", fault)
