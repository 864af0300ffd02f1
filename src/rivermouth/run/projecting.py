"""Writing what was committed into the offsets table, and the upkeep of that table.

A run has one ``OffsetsWriter`` for all its pipelines. It gathers for a moment what they have
committed, and writes that together, in a thread of its own. The truth is in the tables' logs: what
a killed process had gathered, the next start projects from there. How much that may be is bounded.

Each commit adds a small file. So the small ones are made large, and rows that are older than the
configuration keeps them are deleted. Nothing depends on either: what fails is tried again after as
many commits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rivermouth import debug
from rivermouth.debug import reach
from rivermouth.errors import ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.warehouse.ports import OffsetsTable

Entries = Sequence[Recorded]

MOST = 16
"""How many entries of a pipeline may wait or be under way: so far a start has to read back."""
MOMENT_S = 1.0
"""For how long commits are gathered, unless somebody waits for them."""


class Projecting(Protocol):
    """Takes the entries of pipelines to the offsets table, those of each in their order."""

    def put(self, entries: Entries) -> None:
        """Take entries of a pipeline, which follow on those before; each has its counts.

        Raises what kept those before from the table.
        """

    def flush(self, pipeline: str) -> None:
        """Return when all that was put for the pipeline is written. Raises what kept it from it."""


@dataclass(frozen=True)
class AtOnce:
    """Writes each entry before ``put`` returns."""

    offsets: OffsetsTable

    def put(self, entries: Entries) -> None:
        """See ``Projecting``."""
        if entries:
            self.offsets.project(entries)
            _tell(entries)

    def flush(self, pipeline: str) -> None:
        """See ``Projecting``: nothing waits."""


@contextmanager
def flushed(projecting: Projecting, pipeline: str) -> Iterator[None]:
    """When the block ends, all that it put for the pipeline is written, or it raises why not.

    Where the block raises, that is raised: it says more. The next opening projects what is missing.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):
            projecting.flush(pipeline)
        raise
    projecting.flush(pipeline)


class OffsetsWriter:
    """One thread that writes for all pipelines of a process, while the context is open.

    Where a write fails, each pipeline of it is tried alone, so that no other suffers. What one of
    them was refused is raised once, from its next ``put`` or ``flush``, and all that it had put is
    dropped: later entries must not come before earlier ones. It is to open anew, which projects
    what is missing. ``after`` is called after each write, in the same thread.
    """

    def __init__(
        self,
        offsets: OffsetsTable,
        *,
        moment_s: float = MOMENT_S,
        most: int = MOST,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._offsets = offsets
        self._moment_s = moment_s
        self._most = most
        self._after = after
        self._changed = threading.Condition()
        self._waiting: dict[str, list[Recorded]] = {}
        self._under_way: Mapping[str, Entries] = {}
        self._failures: dict[str, Exception] = {}
        self._flushing = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="offsets", daemon=True)

    def __enter__(self) -> OffsetsWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def put(self, entries: Entries) -> None:
        """See ``Projecting``. Waits while too many of the pipeline's entries are on their way."""
        if not entries:
            return
        name = entries[0].entry.pipeline
        with self._changed:
            self._changed.wait_for(lambda: name in self._failures or self._lag(name) < self._most)
            self._raise_failure(name)
            self._waiting.setdefault(name, []).extend(entries)
            self._changed.notify_all()

    def flush(self, pipeline: str) -> None:
        """See ``Projecting``."""
        with self._changed:
            self._flushing += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: not self._lag(pipeline))
            finally:
                self._flushing -= 1
            self._raise_failure(pipeline)

    def _lag(self, pipeline: str) -> int:
        return len(self._waiting.get(pipeline, ())) + len(self._under_way.get(pipeline, ()))

    def _raise_failure(self, pipeline: str) -> None:
        failure = self._failures.pop(pipeline, None)
        if failure is not None:
            raise failure

    def _run(self) -> None:
        while gathered := self._gathered():
            failures = self._write(gathered)
            with self._changed:
                for name, failure in failures.items():
                    self._failures[name] = failure
                    self._waiting.pop(name, None)
                self._under_way = {}
                self._changed.notify_all()
            # What comes after a write loses nothing, and a panic there must not end this thread.
            with suppress(BaseException):
                self._after()

    def _gathered(self) -> Mapping[str, Entries]:
        """What came in the last moment, by pipeline; nothing once the context is to close."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(self._is_urgent, timeout=self._moment_s)
            self._under_way, self._waiting = self._waiting, {}
            return self._under_way

    def _is_urgent(self) -> bool:
        filled = any(2 * self._lag(each) >= self._most for each in self._waiting)
        return self._closing or self._flushing > 0 or filled

    def _write(self, gathered: Mapping[str, Entries]) -> dict[str, Exception]:
        """Write all of it together; what failed, by pipeline."""
        project = self._offsets.project
        together = _failure(project, [one for each in gathered.values() for one in each])
        failures: dict[str, Exception] = {}
        for name, each in gathered.items():
            failed = together
            if together is not None and len(gathered) > 1:
                failed = _failure(project, each)
            failed = failed or _failure(_tell, each)
            if failed is not None:
                failures[name] = failed
        return failures


def _failure(act: Callable[[Entries], object], on: Entries) -> Exception | None:
    """What it raised: this thread serves others, too, and must not end."""
    try:
        act(on)
    except Exception as raised:
        return raised
    except BaseException as panic:  # of a library that is written in Rust
        what = "the offsets table could not be written; the target table is as it should be"
        return ProjectionFailed(what, where="offsets table", found=repr(panic))
    return None


def _tell(entries: Entries) -> None:
    """Say that these entries are in the offsets table."""
    last = entries[-1].entry
    debug.step(last.pipeline, "project", sequence=last.sequence)
    for _ in entries:
        reach("P8")


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
