"""Where Spark finds a Delta table, and the lock that Delta holds while it commits to one.

On a local disk Delta asks whether a version is there, and then renames its own file to it: what
came in between is replaced. Its own commits exclude each other by this lock. So whoever commits to
such a table from Python, while the session may commit, too, has to hold it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


Reader = Callable[["SparkSession", "int | None"], "DataFrame"]


@dataclass(frozen=True)
class Address:
    """One table; exactly one of ``path`` and ``name`` (catalog, schema, table) is given.

    ``reader`` reads it at a version (None: the newest), where Spark itself does not find it.
    """

    path: str = ""
    name: tuple[str, ...] = ()
    reader: Reader | None = field(default=None, compare=False, repr=False)

    @property
    def sql(self) -> str:
        """As a statement names it, quoted."""
        if self.path:
            return f"delta.{quoted(self.path)}"
        return ".".join(quoted(each) for each in self.name)

    def read(self, session: SparkSession) -> DataFrame:
        """Its newest state."""
        if self.reader is not None:
            return self.reader(session, None)
        if self.path:
            return session.read.format("delta").load(self.path)
        return session.read.table(self.sql)

    def at(self, session: SparkSession, version: int) -> DataFrame:
        """Its state at a version."""
        if self.reader is not None:
            return self.reader(session, version)
        return session.sql(f"SELECT * FROM {self.sql} VERSION AS OF {version:d}")

    def write(self, writer: DataFrameWriter) -> None:
        """Carry out a write to it."""
        if self.path:
            writer.format("delta").save(self.path)
        else:
            writer.format("delta").saveAsTable(self.sql)

    def __str__(self) -> str:
        return self.path or ".".join(self.name)


def table_creation(address: Address, columns: str, more: str = "") -> str:
    """The statement that creates a table with ``columns`` (SQL), if missing; ``more`` ends it.

    Of two drivers that create it at once, one may be told so by an error: see
    ``warehouse.tables``.
    """
    return f"CREATE TABLE IF NOT EXISTS {address.sql} ({columns}) USING delta {more}".rstrip()


def table_property(session: SparkSession, address: Address, name: str) -> str:
    """What the table's property of that name says; empty where there is none."""
    shown = session.sql(f"SHOW TBLPROPERTIES {address.sql}").collect()
    return next((str(each["value"]) for each in shown if each["key"] == name), "")


def set_table_property(session: SparkSession, address: Address, name: str, value: str) -> None:
    """Set it, in a commit of its own."""
    pair = f"{literal(name)} = {literal(value)}"
    session.sql(f"ALTER TABLE {address.sql} SET TBLPROPERTIES ({pair})")


def quoted(name: str) -> str:
    """A SQL identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A SQL text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


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
    from py4j.clientserver import ClientServer

    gateway: Any = session.sparkContext._gateway
    return isinstance(gateway, ClientServer)


def pins_threads() -> bool:
    """The same of a session that is started now."""
    return os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true"  # as PySpark reads it
