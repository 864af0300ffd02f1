"""What the scripts in ``jobs/`` share: parameters, configuration, session, exit code.

A job of Databricks is run again when its task fails, and a task fails when its process ends. A
process that lives on without one of its pipelines would hide that.

The scripts run on a laptop (``--local DIR``), on clusters of Databricks and on serverless compute.
Serverless compute has no environment variables to set, so ``--set NAME=VALUE`` gives the value of
``${env:NAME}``.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import typer
from pyspark.sql import SparkSession

from rivermouth.config import Catalog, Config, load
from rivermouth.config.platforms import Platform
from rivermouth.databricks.calls import verify
from rivermouth.databricks.workspace import secrets_here
from rivermouth.errors import ConfigError, Halt, RivermouthError
from rivermouth.local.scratch import scratch_root
from rivermouth.operate.maintain import Maintenance, check_retention
from rivermouth.operate.optimize import WEEK_HOURS
from rivermouth.protocol.accept_changes import (
    ResumePlan,
    check_accepted,
    read_offsets,
)
from rivermouth.run.lines import Lines, as_text
from rivermouth.run.outcome import NOT_OK, accepted, end_of, maintained
from rivermouth.run.report import Listener, PassingOn, PipelineReport, Silent, exit_code
from rivermouth.run.run import Run
from rivermouth.run.starting import (
    Stop,
    check_endless,
    platform_with,
    session_there,
    start_spark,
)
from rivermouth.run.text import console

__all__ = ["WEEK_HOURS", "Job", "finish", "parameters"]

_ENDING = "{}: gave up; the other pipelines end after their current batch, so that the job fails"


class Together(PassingOn):
    """Passes on what it hears; sets ``stop`` once a pipeline has given up.

    After a Halt the others go on: a person has to act, and to run the job again would only keep
    interrupting them. ``say`` prints a line.
    """

    def __init__(
        self, listener: Listener, stop: threading.Event, say: Callable[[str], object]
    ) -> None:
        super().__init__(listener)
        self._stop = stop
        self._say = say

    def finished(self, report: PipelineReport) -> None:
        super().finished(report)
        gave_up = report.error is not None and not isinstance(report.error, Halt)
        if gave_up and not self._stop.is_set():
            self._say(_ENDING.format(report.pipeline))
            self._stop.set()


def parameters(description: str | None) -> argparse.ArgumentParser:
    """A parser with the parameters of every job."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--config", type=Path, required=True, help="the configuration file")
    parser.add_argument("--select", default="", help="these pipelines, with commas; all if empty")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="given")
    parser.add_argument("--local", type=Path, metavar="DIR", help="a folder for the tables, here")
    return parser


def finish(job: Callable[[], int]) -> None:
    """Run a job and end the process with its exit code; an error is printed as one line.

    After a success it returns: some runtimes of Databricks treat every exit as a failure.
    """
    try:
        code = job()
    except RivermouthError as error:
        sys.stderr.write(f"{error}\n")
        code = error.exit_code
    if code:
        sys.exit(code)


@dataclass(frozen=True)
class Job:
    """A configuration, the selected pipelines, and the Spark to work on them with."""

    config: Config
    names: Sequence[str]
    local: bool = False

    @staticmethod
    def of(asked: argparse.Namespace) -> Job:
        """The job that the parameters ``asked`` describe. Raises ConfigError."""
        given = dict(_pair(each) for each in asked.given)
        config = load(asked.config, {**os.environ, **given}, folder=asked.local)
        return Job(config, config.selected(asked.select), asked.local is not None)

    @cached_property
    def session(self) -> SparkSession:
        """The session of the platform; on a laptop a new local one."""
        if self.local:
            return start_spark(self.config, console(stderr=True), secrets_here(), self.names)
        session = session_there()
        session.conf.set("spark.sql.session.timeZone", "UTC")  # JSON times without a zone are UTC
        return session

    @cached_property
    def platform(self) -> Platform:
        """What the session can do."""
        return platform_with(self.session)

    def ingest(self, *, continuous: bool) -> int:
        """Bring the tables up to date; the exit code. Raises ConfigError.

        Where ``continuous``, all pipelines end once one has given up, see ``Together``.
        """
        if continuous:
            check_endless(self.platform)
        shown = console()
        stop = _stopped()
        heard: Listener = Lines(as_text(shown))
        if continuous:
            heard = Together(heard, stop, lambda line: shown.print(line, soft_wrap=True))
        reports = self._run(continuous=continuous).pipelines(self.names, heard, stop)
        for each in reports:
            shown.print(end_of(each), soft_wrap=True)
        return exit_code(reports)

    def resume(self, accept: str, offsets: str = "") -> int:
        """Accept what halted the one selected pipeline; the exit code.

        ``accept`` and ``offsets`` are those of the command. Raises ConfigError.
        """
        if len(self.names) != 1:
            raise ConfigError(("--select: name one pipeline, the one that halted",))
        check_accepted(accept, offsets)
        at = read_offsets(offsets)
        [name] = self.names

        def agree(plan: ResumePlan) -> bool:
            for line in plan.lines:
                console().print(f"{name}: {line}", soft_wrap=True)
            return True

        run = self._run(continuous=False)
        position = run.resume(name, accept, Silent(), at, agree)
        console().print(accepted(name, accept, position), soft_wrap=True)
        return 0

    def maintain(self, *, retain_hours: int) -> int:
        """Compact the tables and remove what nothing needs any more; the exit code.

        A table that keeps old files for less than ``retain_hours`` is refused. Raises
        ConfigError for less than 24.
        """
        check_retention(retain_hours)
        maintenance = Maintenance(
            self.config, self.session, scratch_root(), retain_hours=retain_hours
        )
        reports = maintenance.pipelines(self.names)
        typer.echo(maintained(reports))
        return exit_code(reports)

    def _run(self, *, continuous: bool) -> Run:
        return Run(
            self.config,
            self.session,
            scratch_root(),
            continuous=continuous,
            platform=self.platform,
            secrets=secrets_here(),
        )

    def verify(self, *, strict: bool = False, since: str = "", record: bool = True) -> int:
        """Prove against Kafka that no record is missing or duplicated; the exit code.

        ``strict``: what cannot be checked is a fault too. ``since`` is that of the command. What is
        proved is recorded, unless ``record`` is False: in a catalog in its volume.
        """
        session = self.session if isinstance(self.config.warehouse, Catalog) else None
        found = verify(self.config, session, self.names, strict=strict, since=since, record=record)
        typer.echo(str(found))
        return 0 if found.ok else NOT_OK


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ConfigError((f"--set {name}: write NAME=VALUE",))
    return name, value


def _stopped() -> threading.Event:
    """An event that SIGTERM and Ctrl-C set; in other threads than the main one nothing sets it."""
    stop = Stop("stopping after the current batch")
    if threading.current_thread() is threading.main_thread():
        stop.listen()
    return stop.event
