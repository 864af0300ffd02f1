"""A Spark session on this machine, tuned for small commits on few cores.

Every setting here was measured; the two that matter most are the file manager of the
streaming checkpoint (the default forks a process per rename on a local disk) and the
number of partitions in which Delta rebuilds a snapshot (50 by default).
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java
from rivermouth.scratch import ScratchFolder

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What makes a session one of Delta's."""

QUICK_START = {
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}
"""Settings over ours for a session that lives briefly: half the start-up, slow bulk decoding."""


def session_settings(cores: int, folder: Path) -> dict[str, str]:
    """The settings of a local session with ``cores`` task slots and its own ``folder``."""
    return {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.databricks.delta.snapshotPartitions": str(cores),
        # UTC in the JVM as well: elsewhere Delta rebuilds state inside every commit.
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseParallelGC",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.parquet.compression.codec": "zstd",
        # Not INT96, which readers outside Spark take for nanoseconds, and overflow.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def start_session(
    scratch: Path, settings: Mapping[str, str] | None = None, *, tuned: bool = True
) -> SparkSession:
    """Start (or join) the local session, one task slot per core.

    ``settings`` go over ours; ``tuned=False`` leaves ours out but for Delta itself.

    What the JVM says of itself goes to ``scratch/spark.log``: what matters of it reaches
    the user as an error of ours. Raises a SetupError where Java or the jars are missing.
    """
    slots = os.cpu_count() or 2
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # not whatever python3 is on PATH
    os.environ.pop("SPARK_HOME", None)
    builder = SparkSession.builder.master(f"local[{slots}]").appName("rivermouth")
    builder = builder.config("spark.jars", ",".join(str(each) for each in jars("spark")))
    scratch.mkdir(parents=True, exist_ok=True)
    folder = ScratchFolder(scratch / "sessions", "spark")
    ours = session_settings(slots, folder.__enter__()) if tuned else {}
    atexit.register(folder.__exit__, None, None, None)
    for name, value in {**DELTA, **ours, **(settings or {})}.items():
        builder = builder.config(name, value)
    with _stderr_to(scratch / "spark.log"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Let a process started meanwhile inherit ``file`` as its standard error, for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with file.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
