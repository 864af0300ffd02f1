"""What the scripts in ``jobs/`` share: parameters, configuration, session, exit code.

They run on a laptop (``--local DIR``), on Databricks' clusters and on serverless compute. There
is no environment to set on the last, so ``--set NAME=VALUE`` says what ``${env:NAME}`` reads.
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

from pyspark.sql import SparkSession

from rivermouth.cli.progress import Lines
from rivermouth.cli.render import console
from rivermouth.cli.resuming import Accept, show_accepted
from rivermouth.cli.settings import known_secrets, selected
from rivermouth.cli.stopping import Stop
from rivermouth.cli.tables import NOT_OK, show
from rivermouth.config import Catalog, Config, load
from rivermouth.errors import ConfigError, RivermouthError
from rivermouth.local.scratch import scratch_root
from rivermouth.registry.platforms import SERVERLESS, Capability, Platform, platform_of
from rivermouth.run.report import Silent, exit_code
from rivermouth.run.run import Run
from rivermouth.verify import verify
from rivermouth.verify.tables.catalog import CatalogTables


def parameters(description: str | None) -> argparse.ArgumentParser:
    """What every job may be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--config", type=Path, required=True, help="the configuration file")
    parser.add_argument("--select", default="", help="these pipelines, with commas; all if empty")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="given")
    parser.add_argument("--local", type=Path, metavar="DIR", help="a folder for the tables, here")
    return parser


def finish(job: Callable[[], int]) -> None:
    """Run a job and end the process with its exit code; an error is one line.

    A job that went well just returns: some of Databricks' runtimes take any exit for a failure.
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
        """The job that the parameters describe. Raises ConfigError."""
        given = dict(_pair(each) for each in asked.given)
        config = load(asked.config, {**os.environ, **given}, folder=asked.local)
        return Job(config, selected(config, asked.select), asked.local is not None)

    @cached_property
    def session(self) -> SparkSession:
        """The platform's session; on a laptop one of our own."""
        if self.local:
            from rivermouth.local.session import start_session

            return start_session(scratch_root())
        session = SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "UTC")  # JSON times without a zone are UTC
        return session

    @cached_property
    def platform(self) -> Platform:
        """What the session allows."""
        connect = ".connect." in type(self.session).__module__
        # Of a session with a JVM the master tells whether its executors are this machine.
        one_host = connect or (self.session.sparkContext.master or "").startswith("local")
        return platform_of(connect=connect, one_host=one_host)

    def ingest(self, *, continuous: bool) -> int:
        """Bring the tables up to date; the exit code. Raises ConfigError."""
        if continuous and not self.platform.has(Capability.CONTINUOUS):
            line = f"{SERVERLESS.name} compute runs nothing without end: leave out --continuous"
            raise ConfigError((line,))
        shown = console()
        reports = self._run(continuous=continuous).pipelines(self.names, Lines(shown), _stopped())
        for each in reports:
            shown.print(each.line(), soft_wrap=True)
        return exit_code(reports)

    def resume(self, accept: Accept) -> int:
        """Accept what undid commits of the one selected pipeline, see ``Run.resume``."""
        if len(self.names) != 1:
            raise ConfigError(("--select: name one pipeline, the one that halted",))
        [name] = self.names
        position = self._run(continuous=False).resume(name, accept.value, Silent())
        show_accepted(console(), name, accept, position)
        return 0

    def _run(self, *, continuous: bool) -> Run:
        return Run(
            self.config,
            self.session,
            scratch_root(),
            continuous=continuous,
            platform=self.platform,
            secrets=known_secrets(),
        )

    def verify(self) -> int:
        """Prove from Kafka that no record is missing or twice; the exit code."""
        names = self.config.warehouse
        tables = None
        if isinstance(names, Catalog):
            tables = CatalogTables(names, lambda statement: self.session.sql(statement).toArrow())
        found = verify(self.config, self.names, secrets=known_secrets(), tables=tables)
        show(found)
        return 0 if found.ok else NOT_OK


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise ConfigError((f"--set {name}: write NAME=VALUE",))
    return name, value


def _stopped() -> threading.Event:
    """Set by SIGTERM and Ctrl-C, where this is the thread that hears of them."""
    stop = Stop("stopping: the batch in hand is finished first")
    if threading.current_thread() is threading.main_thread():
        stop.listen()
    return stop.event
