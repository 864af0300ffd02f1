"""A class-data archive for Spark's JVM: the JVM maps its classes instead of parsing them.

It halves the time to the first commit. The set-up or ``python -m rivermouth.local.archive``
records it once per environment; without it a session starts more slowly. The JVM checks that
the archive fits the jars, and ignores one that does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.core.context import SparkContext

from rivermouth.local.jars import jars
from rivermouth.local.java import find_java
from rivermouth.local.session import archive_file, start_session

_TIMEOUT_S = 300


def main(arguments: Sequence[str]) -> int:
    """Record the archive if there is none. Always returns 0: the archive is only for speed."""
    if arguments:
        _exercise(Path(arguments[0]))
        return 0
    file = archive_file(find_java(), jars("spark"))
    if file.exists():
        return 0
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as work:
            made = Path(work) / file.name
            command = [sys.executable, "-m", "rivermouth.local.archive", str(made)]
            subprocess.run(command, timeout=_TIMEOUT_S, check=False, stdout=subprocess.DEVNULL)
            if made.exists():
                os.replace(made, file)
    except (OSError, subprocess.TimeoutExpired) as fault:
        sys.stderr.write(f"no class archive, so sessions start more slowly: {fault}\n")
    return 0


def _exercise(made: Path) -> None:
    """Do what every run does once, in a JVM that writes its classes to ``made`` at its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = start_session(folder / "scratch", java_options=f"-XX:ArchiveClassesAtExit={made}")
        table = str(folder / "table")
        columns = "id BIGINT, _kafka STRUCT<offset: BIGINT>"
        session.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta")
        rows = session.range(10).selectExpr("id", "struct(id AS offset) AS _kafka")
        rows.write.format("delta").mode("append").save(table)
        rows.localCheckpoint().createOrReplaceTempView("rows")
        merge = f"MERGE INTO delta.`{table}` t USING rows s ON t.id = s.id"
        session.sql(f"{merge} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
        stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        query = (
            stream.selectExpr("value AS id", "struct(value AS offset) AS _kafka")
            .writeStream.foreachBatch(
                lambda batch, _: batch.write.format("delta").mode("append").save(table)
            )
            .option("checkpointLocation", f"file:{folder / 'checkpoint'}")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(_TIMEOUT_S)
        gateway: Any = SparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_TIMEOUT_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
