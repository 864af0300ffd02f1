"""A class-data archive for Spark's JVM: what it loads at every start, mapped instead of parsed.

Halves the time to the first commit. Recorded once per environment, by the set-up or by
``python -m rivermouth.local.archive``; a session without one is only slower. The JVM itself
checks that an archive fits its jars, and passes over one that does not.
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
    """Record the archive unless it is there. Never fails: it is only for speed."""
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
        sys.stderr.write(f"no class archive, starts will be slower: {fault}\n")
    return 0


def _exercise(made: Path) -> None:
    """Do once what every run does, in a JVM that writes down its classes when it ends."""
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
