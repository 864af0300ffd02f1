"""A driver for tests to kill: ``python -m tests.driver FILE once|continuous NAME…``.

Or ``FILE accept-deletes NAME VERSION``, or ``FILE replay NAME FROM TABLE``; TABLE may be empty.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from rivermouth.cluster.session import start_on_cluster
from rivermouth.config import Config, TableName, load
from rivermouth.local.scratch import scratch_root
from rivermouth.local.session import BRIEF, start_session
from rivermouth.replay.command import replay
from rivermouth.replay.request import read_bound
from rivermouth.run.report import (
    CommitReport,
    MirrorReport,
    OpenReport,
    PipelineReport,
    RetryReport,
    exit_code,
)
from rivermouth.run.run import Run
from rivermouth.run.starting import platform_with
from tests import waits
from tests.attached import attach, is_attached


class Printer:
    """Says each thing it hears in a line of standard output."""

    def opened(self, report: OpenReport) -> None:
        print(f"opened {report.line()}", flush=True)

    def committed(self, report: CommitReport) -> None:
        print(f"committed {report.line()}", flush=True)

    def tries_again(self, report: RetryReport) -> None:
        print(f"waits {report.line()}", flush=True)

    def not_mirrored(self, report: MirrorReport) -> None:
        print(f"not mirrored {report.line()}", flush=True)

    def finished(self, report: PipelineReport) -> None:
        print(f"finished {report.line()}", flush=True)


def main(file: str, kind: str, *names: str) -> int:
    """Run the pipelines like the command does."""
    waits.shorten()
    faulthandler.register(signal.SIGUSR1, sys.stdout)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    scratch = scratch_root()
    config = load(Path(file))
    session = attach() if is_attached() else started(scratch / "session", config)
    if kind == "replay":
        name, begin, into = names
        table = TableName.parse(into) if into else None
        replay(config, session, scratch, name, read_bound("--from", begin), into=table)
        return 0
    platform = platform_with(session)
    run = Run(config, session, scratch, continuous=kind == "continuous", platform=platform)
    if kind == "accept-deletes":
        name, version = names
        run.accept_deletes(name, [int(version)], lambda _: None)
        return 0
    return exit_code(run.pipelines(names, Printer(), stop))


def started(scratch: Path, config: Config) -> SparkSession:
    """A session in a JVM of this process's own, which starts fast where it is all of Spark."""
    if config.master:
        return start_on_cluster(scratch, config.spark)
    return start_session(scratch, java_options=BRIEF)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
