"""Upkeep of the offsets table by the run that writes it, every so many commits.

Each commit adds a small file. So the small ones are made large, and rows that are older than the
configuration keeps them are deleted. Nothing depends on either: what fails is tried again after as
many commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from rivermouth.warehouse.ports import OffsetsTable

EVERY = 100
"""So many commits of the table, whoever made them, are between two upkeeps."""


@dataclass
class OffsetsUpkeep:
    """To be called after each write of this process. Raises nothing.

    ``pipelines`` are those of the configuration: rows of others are not its to delete.
    ``retention`` is how long rows are kept; None: for ever. ``clock`` is in seconds since 1970.
    """

    offsets: OffsetsTable
    pipelines: Collection[str] = ()
    retention: timedelta | None = None
    every: int = EVERY
    clock: Callable[[], float] = time.time
    _seen: int | None = None
    """The version after the last write."""

    def __call__(self) -> None:
        """Do what is due."""
        with suppress(Exception):
            if not self._is_due():
                return
            with suppress(Exception):
                self._forget()
            self.offsets.compact()

    def _is_due(self) -> bool:
        version = self.offsets.version()
        before = version - 1 if self._seen is None else self._seen
        self._seen = version
        return version // self.every > before // self.every

    def _forget(self) -> None:
        if self.retention is not None:
            before_s = self.clock() - self.retention.total_seconds()
            self.offsets.forget(int(before_s * 1000), self.pipelines)
