"""A Spark session of this process, tuned for small commits: on the cores of this machine.

On a cluster the driver is the same, see ``cluster.session``.

Every setting was measured. Two matter most: the file manager of the streaming checkpoint (the
default starts a process per rename on a local disk), and the number of partitions in which
Delta rebuilds a snapshot (50 by default).
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rivermouth.local.jars import jars
from rivermouth.local.java import archive_options, find_java, java_environ
from rivermouth.local.machine import cores
from rivermouth.local.scratch import scratch_of_process, temporary_root

_SOCKET_PATH_MAX = 103
"""Bytes of the path of a socket that any system takes: macOS has room for 104, with a zero."""
_SOCKET_NAME = "/.01234567-89ab-cdef-0123-456789abcdef.sock"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The settings that add Delta to a session."""

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=192m"
"""Options of a short-lived JVM, without the optimizing compiler: decoding much data is slow.

The code cache is set, since without that compiler it is 48 MB, and Hive and Connect fill it.
"""


_WORKERS_MEMORY = {
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(128 << 20),
}
"""A Python worker keeps the memory of one Arrow batch for the next one. To give it back to the
system and to get it again page by page is a fifth of the work of decoding. glibc alone reads what
begins with MALLOC.
"""


def session_settings(slots: int, folder: Path) -> dict[str, str]:
    """The settings of a local session with ``slots`` task slots and its own ``folder``."""
    return {
        **driver_settings(folder),
        "spark.sql.shuffle.partitions": str(slots),
        "spark.databricks.delta.snapshotPartitions": str(slots),
        # VACUUM lists folders in that many tasks; the default is 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(slots),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.TMPDIR": str(folder),
    }


def driver_settings(folder: Path) -> dict[str, str]:
    """The settings of a session wherever its tasks run; ``folder`` is the driver's own."""
    return {
        # The JVM uses UTC too: in any other zone Delta rebuilds its state in every commit.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
        ),
        # A path or a name may contain ${.
        "spark.sql.variable.substitute": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.parquet.compression.codec": "zstd",
        # Not INT96: readers outside Spark convert it to nanoseconds, which overflow.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
        "spark.driver.memory": "2g",
        # Beyond the default of 64, each batch would connect anew for most partitions. A run that
        # knows how many it reads says how many are kept, see ``heap``.
        "spark.kafka.consumer.cache.capacity": "100000",
        # A batch by key needs about 100 generated classes, as many as the default keeps; beyond
        # that each batch compiles some anew.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Each pipeline has a pool of its own: none waits until the batches of all others are done.
        "spark.scheduler.mode": "FAIR",
        # Otherwise every Column records its line of Python, with several calls into the JVM.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_WORKERS_MEMORY,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def worker_sockets(folder: Path) -> dict[str, str]:
    """The settings that let the JVM and its Python workers meet at files in ``folder``.

    On loopback a task waits 40 ms for its first rows: the JVM writes them in small parts, and the
    system waits for the acknowledgement of each. Where paths in the folder are too long for a
    socket, loopback stays.
    """
    fits = len(os.fsencode(folder)) + len(_SOCKET_NAME) <= _SOCKET_PATH_MAX
    return {
        "spark.python.unix.domain.socket.enabled": str(fits).lower(),
        "spark.python.unix.domain.socket.dir": str(folder),
    }


def start_session(
    scratch: Path,
    settings: Mapping[str, str] | None = None,
    *,
    java_options: str = "-XX:+UseParallelGC",
    tuned: bool = True,
) -> SparkSession:
    """Start the local session with one task slot per core, or return the running one.

    ``settings`` override ours; ``tuned=False`` keeps only those of Delta. The output of the
    JVM goes to ``scratch/spark.log``. Raises a SetupError if Java or the jars are missing.
    """
    own = scratch_of_process(scratch / "sessions", "spark")
    sockets = scratch_of_process(temporary_root(), "py")
    slots = cores()
    ours = session_settings(slots, own) | worker_sockets(sockets)
    here = {"spark.master": f"local[{slots}]", **(ours if tuned else {})}
    given = {**here, **(settings or {})}
    # Not whatever python3 is on PATH.
    return begun(scratch, own, given, jars("spark"), sys.executable, java_options)


def begun(
    scratch: Path,
    own: Path,
    settings: Mapping[str, str],
    classpath: Sequence[Path],
    python: str,
    java_options: str = "-XX:+UseParallelGC",
) -> SparkSession:
    """Start a session with Delta and these settings, or return the running one.

    ``own`` is a folder of this session alone, and ``python`` is what tasks run. The output of the
    JVM goes to ``scratch/spark.log``. Raises a SetupError if Java is missing.
    """
    java = find_java()
    os.environ.update(java_environ(os.environ), JAVA_HOME=str(java.home))
    os.environ.pop("SPARK_HOME", None)
    # What a killed JVM leaves goes with the folder, see ``remove_dead``.
    temporary = shlex.quote(f"-Djava.io.tmpdir={own}")
    archive = " ".join(archive_options(java, classpath))
    every = {
        "spark.app.name": "rivermouth",
        "spark.driver.extraClassPath": ":".join(map(str, classpath)),
        "spark.driver.extraJavaOptions": (
            f"-Duser.timezone=UTC {temporary} {java_options} {archive}"
        ),
        **DELTA,
        **settings,
    }
    named, os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON"), python
    try:
        _start_jvm(every, scratch / "spark.log")
        session = SparkSession.builder.config(map={**every}).getOrCreate()
    finally:  # the context keeps it; to the next one it would be a word of the user
        if named is None:
            os.environ.pop("PYSPARK_PYTHON")
        else:
            os.environ["PYSPARK_PYTHON"] = named
    session.sparkContext.setLogLevel("ERROR")
    # Once a task has run Python, the JVM holds a connection to a server in this process, which
    # would print a trace when the JVM dies. The pipelines' own errors say that.
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None
    return session


@contextmanager
def ending(session: SparkSession) -> Iterator[None]:
    """A block after which the session is stopped; one whose JVM is gone has ended already."""
    try:
        yield
    finally:
        with suppress(Py4JError, ConnectionError):
            session.stop()


def _start_jvm(settings: Mapping[str, str], output: Path) -> None:
    """Start the JVM of this process, if there is none. ``output`` is its standard output and error.

    Otherwise Delta would print the result of a VACUUM into our output.
    """
    with output.open("ab") as log:
        conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
        if SparkContext._gateway is None:
            launch: Any = launch_gateway  # has no types
            started = launch(conf, {"stdout": log, "stderr": log})
            SparkContext._ensure_initialized(gateway=started)
