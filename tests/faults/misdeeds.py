"""Tasks of which one does not come to its end: its worker or its executor is killed, or it is slow.

``python -m tests.faults.misdeeds FILE MASTER KIND MARKS`` runs the pipelines of FILE on a master of
Spark's, where one attempt at one task misbehaves. MARKS is a folder: there stands that it has.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext

from rivermouth.config import load
from rivermouth.local.jars import jars
from rivermouth.local.scratch import scratch_root
from rivermouth.local.session import BRIEF, ending, start_session
from rivermouth.run.report import exit_code
from rivermouth.run.run import Run
from rivermouth.write.files import data_files
from rivermouth.write.files.bad_records import QuarantineTarget
from rivermouth.write.files.data_files import Folder
from rivermouth.write.files.writing import Batches, Decode, Writing
from rivermouth.write.keys.entries import Reduction
from rivermouth.write.landings import files as landing
from tests.driver import Printer
from tests.processes import ROOT, listed
from tests.waiting import wait_for

Task = Callable[[Batches], Iterator[pa.RecordBatch]]
BATCH_ROWS = 10
"""Rows of a batch of Arrow: a task gets several of them."""
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
}


def misbehaving(
    kind: str, marks: Path
) -> Callable[[Folder, QuarantineTarget, Decode | None, Reduction | None], Task]:
    """The landing's ``Writing``, but the first attempt of all misbehaves once it has written rows.

    ``worker``: it is killed between two batches; ``executor``: its executor is, after the last;
    ``slow``: it waits until another attempt at the same task has ended; ``told``: it fails once it
    has told all.
    """

    def made(
        into: Folder,
        target: QuarantineTarget,
        decode: Decode | None = None,
        reduction: Reduction | None = None,
    ) -> Task:
        task = Writing(into, target, decode, reduction)

        def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if _claimed(marks / "begun"):
                with patch.object(data_files, "GROUP_ROWS", 1):  # what is added is in the file
                    yield from task(_until(batches, kind, marks))
                if kind == "told":
                    raise RuntimeError("this attempt has told all")
                return
            yield from task(batches)
            _note_second_attempt(marks)

        return written

    return made


def _note_second_attempt(marks: Path) -> None:
    context = TaskContext.get()
    if context is not None and context.attemptNumber():
        (marks / "again").touch()


def _claimed(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _until(batches: Iterable[pa.RecordBatch], kind: str, marks: Path) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        if kind == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
    if kind == "executor":
        os.kill(_parent(os.getppid()), signal.SIGKILL)
    elif kind == "slow":
        wait_for((marks / "again").exists)


def _parent(process: int) -> int:
    """Of Python's daemon: the JVM of the executor."""
    [parent] = (int(ppid) for pid, ppid in listed("ppid") if int(pid) == process)
    return parent


def main(config: str, master: str, kind: str, marks: str) -> int:
    """Run all pipelines of the file once."""
    pipelines = load(Path(config))
    classpath = ":".join(map(str, jars("spark")))
    settings = {**SETTINGS, "spark.master": master, "spark.executor.extraClassPath": classpath}
    session = start_session(scratch_root() / "session", settings, java_options=BRIEF)
    run = Run(pipelines, session, scratch_root(), continuous=False)
    with ExitStack() as stack:
        stack.enter_context(ending(session))
        stack.enter_context(patch.object(landing, "Writing", misbehaving(kind, Path(marks))))
        ends = run.pipelines([*pipelines.pipelines], Printer(), threading.Event())
    return exit_code(ends)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
