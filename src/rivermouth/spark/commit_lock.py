"""The lock that Delta holds in a session's JVM while it commits to a table.

On a local disk Delta asks whether a version is there, and then renames its own file to it: what
came in between is replaced. Its own commits exclude each other by this lock. So whoever commits to
such a table from Python, while the session may commit, too, has to hold it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession


def under_commit_lock(session: SparkSession, path: str, act: Callable[[], object]) -> None:
    """Do something while Delta commits nothing to the table at ``path``, see ``commit_lock``.

    What is asked for in the main thread is done in another one. An interrupt (Ctrl-C) comes into
    the main thread; amid a call to the JVM it would leave a lock there that nobody gives back.
    """

    def locked() -> None:
        with commit_lock(session, path):
            act()

    if threading.current_thread() is not threading.main_thread():
        locked()
        return
    with ThreadPoolExecutor(1, "commit") as threads:
        threads.submit(locked).result()


@contextmanager
def commit_lock(session: SparkSession, path: str) -> Iterator[None]:
    """Hold the lock of the table at ``path``: within the block Delta commits nothing to it.

    Waits for a commit that is under way. Only where ``can_lock``, and not in the main thread.
    RESTORE, CLONE and CONVERT do not take it.
    """
    jvm: Any = session.sparkContext._jvm
    deltas: Any = jvm.org.apache.spark.sql.delta.DeltaLog
    # From Delta's cache, which keeps what was used in the last hour: anew for each commit.
    lock = deltas.forTable(session._jsparkSession, path).snapshotLock()
    lock.lock()
    try:
        yield
    finally:
        lock.unlock()


def can_lock(session: SparkSession) -> bool:
    """Whether each thread of Python has one of the JVM, to which a lock belongs.

    That is Spark's default (``PYSPARK_PIN_THREAD``). Not for Spark Connect.
    """
    gateway: Any = session.sparkContext._gateway
    return isinstance(gateway, ClientServer)
