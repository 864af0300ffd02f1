"""One writing process per table on a local file system, which gives Delta no put-if-absent.

The lock is held by the JVM, the process that writes, so it outlives a killed Python driver
for as long as that driver's JVM could still commit, and not a moment longer.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from pyspark.sql import SparkSession

from rivermouth.errors import TableLocked

PATIENCE_S = 5.0
"""So long is waited for a predecessor that ends."""
_POLL_S = 0.1


class TableLock:
    """The exclusive right of this JVM to write the tables of one pipeline target.

    Waits up to ``PATIENCE_S`` for a dying predecessor, then raises TableLocked. Pipelines
    of one run may share a table: within a JVM, Delta's commits exclude each other.
    """

    _held: ClassVar[dict[Path, tuple[Any, int]]] = {}
    _turn: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, session: SparkSession, file: Path) -> None:
        self._session = session
        self._file = file

    def __enter__(self) -> None:
        with self._turn:
            channel, holders = self._held.get(self._file, (None, 0))
            if channel is None:
                channel = self._acquire()
            self._held[self._file] = (channel, holders + 1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._turn:
            channel, holders = self._held.pop(self._file)
            if holders > 1:
                self._held[self._file] = (channel, holders - 1)
            else:
                channel.close()

    def _acquire(self) -> Any:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        jvm: Any = self._session._jvm
        channel = jvm.java.io.RandomAccessFile(str(self._file), "rw").getChannel()
        deadline = time.monotonic() + PATIENCE_S
        while channel.tryLock() is None:
            if time.monotonic() > deadline:
                channel.close()
                raise TableLocked(
                    "another process writes this table",
                    where=str(self._file.with_suffix("")),
                    expected="one writing process",
                )
            time.sleep(_POLL_S)
        return channel
