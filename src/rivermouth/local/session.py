"""A Spark session on this machine, tuned for small commits on few cores.

Every setting here was measured; the two that matter most are the file manager of the
streaming checkpoint (the default forks a process per rename on a local disk) and the
number of partitions in which Delta rebuilds a snapshot (50 by default).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.local.jars import jars
from rivermouth.local.java import Java, find_java
from rivermouth.local.scratch import ScratchFolder

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What makes a session one of Delta's."""

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=192m"
"""Options of a JVM that lives briefly: it never stops to optimize, so bulk decoding is slow.

Without the optimizing compiler it would keep 48 MB for code, which Hive and Connect fill.
"""


def session_settings(cores: int, folder: Path) -> dict[str, str]:
    """The settings of a local session with ``cores`` task slots and its own ``folder``."""
    return {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.databricks.delta.snapshotPartitions": str(cores),
        # UTC in the JVM as well: elsewhere Delta rebuilds state inside every commit.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
        ),
        # Paths and names are what they are, also with ${ in them.
        "spark.sql.variable.substitute": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        # VACUUM lists folders in as many tasks, 10,000 by itself.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
        "spark.sql.parquet.compression.codec": "zstd",
        # Not INT96, which readers outside Spark take for nanoseconds, and overflow.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Else every Column notes its line of Python, in several calls into the JVM each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def start_session(
    scratch: Path,
    settings: Mapping[str, str] | None = None,
    *,
    java_options: str = "-XX:+UseParallelGC",
    tuned: bool = True,
) -> SparkSession:
    """Start (or join) the local session, one task slot per core.

    ``settings`` go over ours; ``tuned=False`` leaves ours out but for Delta itself.

    What the JVM says of itself goes to ``scratch/spark.log``: what matters of it reaches
    the user as an error of ours. Raises a SetupError where Java or the jars are missing.
    """
    slots = os.cpu_count() or 2
    java, classpath = find_java(), jars("spark")
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # not whatever python3 is on PATH
    os.environ.pop("SPARK_HOME", None)
    builder = SparkSession.builder.master(f"local[{slots}]").appName("rivermouth")
    builder = builder.config("spark.driver.extraClassPath", ":".join(map(str, classpath)))
    options = f"-Duser.timezone=UTC {java_options} {_archive_options(java, classpath)}"
    builder = builder.config("spark.driver.extraJavaOptions", options)
    scratch.mkdir(parents=True, exist_ok=True)
    folder = ScratchFolder(scratch / "sessions", "spark")
    ours = session_settings(slots, folder.__enter__())
    atexit.register(folder.__exit__, None, None, None)
    for name, value in {**DELTA, **(ours if tuned else {}), **(settings or {})}.items():
        builder = builder.config(name, value)
    with _output_to(scratch / "spark.log"):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def archive_file(java: Java, classpath: Sequence[Path]) -> Path:
    """Where the class archive for this Java and these jars lies (see ``local.archive``)."""
    facts = "\n".join([str(java.home), *map(str, classpath)])
    key = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "rivermouth" / f"classes-{key}.jsa"


def _archive_options(java: Java, classpath: Sequence[Path]) -> str:
    file = archive_file(java, classpath)
    # Quiet: an archive that does not fit is passed over, and said so on standard output.
    return f"-XX:SharedArchiveFile={file} -Xlog:disable" if file.exists() else ""


@contextmanager
def _output_to(file: Path) -> Iterator[None]:
    """Let a process started meanwhile inherit ``file`` as its standard output and error, for good.

    Delta prints what a VACUUM did, in the middle of what we say.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        with file.open("ab") as log:
            for number in kept:
                os.dup2(log.fileno(), number)
        yield
    finally:
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
