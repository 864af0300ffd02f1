"""Class-data archives for the JVMs of Spark and of the broker: they map their classes instead of
parsing them.

That halves the time to the first commit, and that of a broker's start. The set-up or ``python -m
rivermouth.local.archive`` records both once per environment; without them both start more slowly.
The JVM checks that an archive fits the jars, and ignores one that does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.core.context import SparkContext

from rivermouth.local.broker import Broker
from rivermouth.local.jars import jars
from rivermouth.local.java import archive_file, find_java
from rivermouth.local.server import alive
from rivermouth.local.session import start_session

_TIMEOUT_S = 300
_SECONDS = 30.0


def main(arguments: Sequence[str]) -> int:
    """Record the archives that are missing. Always returns 0: they are only for speed."""
    if arguments:
        name, made = arguments
        _EXERCISES[name](Path(made))
        return 0
    for name in _EXERCISES:
        file = archive_file(find_java(), jars(name))
        if not file.exists():
            _record(name, file)
    return 0


def _record(name: str, file: Path) -> None:
    """Record one archive, in a process of its own."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as work:
            made = Path(work) / file.name
            command = [sys.executable, "-m", "rivermouth.local.archive", name, str(made)]
            subprocess.run(command, timeout=_TIMEOUT_S, check=False, stdout=subprocess.DEVNULL)
            if made.exists():
                os.replace(made, file)
    except (OSError, subprocess.TimeoutExpired) as fault:
        sys.stderr.write(f"no class archive, so the start of {name} takes longer: {fault}\n")


def _exercise_spark(made: Path) -> None:
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


def _exercise_broker(made: Path) -> None:
    """Write and read a record of a transaction, on a broker that writes its classes to ``made`` at
    its end. So does the JVM that formats its folder, before it.
    """
    options = f"-XX:ArchiveClassesAtExit={made} {os.environ.get('JDK_JAVA_OPTIONS', '')}"
    with Broker(environ={**os.environ, "JDK_JAVA_OPTIONS": options}) as broker:
        client: dict[str, str | int | float | bool] = {
            "bootstrap.servers": broker.bootstrap_servers
        }
        admin = AdminClient(client)
        admin.create_topics([NewTopic("first", 1, 1)])["first"].result(_SECONDS)
        producer = Producer({**client, "transactional.id": "first"})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        producer.produce("first", b"record")
        producer.commit_transaction(_SECONDS)
        consumer = Consumer({**client, "group.id": "first", "auto.offset.reset": "earliest"})
        consumer.subscribe(["first"])
        consumer.consume(1, _SECONDS)
        consumer.close()
        _await_end(broker.pid)


def _await_end(pid: int) -> None:
    """End a JVM and wait until it has written its classes: longer than a broker's end may take."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _TIMEOUT_S
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)


_EXERCISES = {"spark": _exercise_spark, "broker": _exercise_broker}
"""What is exercised for the archive of a set of jars."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
