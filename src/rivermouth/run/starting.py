"""Starting a run on this machine: the session that it needs, and the signals that stop it."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from rivermouth.config import Config, Secrets
    from rivermouth.config.platforms import Platform
    from rivermouth.run.run import Run
    from rivermouth.spark.session import Spark


_SHOW_CURSOR = "\x1b[?25h"


class Stop:
    """Sets ``event`` on SIGTERM or Ctrl-C; a second Ctrl-C ends the process at once.

    To abort a run is safe: a batch is either committed or not, and the next start reads from
    the log which. The texts ``asked`` and ``aborted`` go to standard error.
    """

    def __init__(self, asked: str, aborted: str = "aborted") -> None:
        self.event = threading.Event()
        self._asked, self._aborted = asked, aborted

    def listen(self) -> None:
        """Handle both signals. Call it again where the main thread has started Spark since: that
        takes over SIGINT.
        """
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT and self.event.is_set():
            _write(self._aborted + (_SHOW_CURSOR if sys.stderr.isatty() else ""))
            os._exit(128 + number)
        if not self.event.is_set():
            _write(self._asked)
        self.event.set()


def _write(text: str) -> None:
    """Write to the descriptor: the handler may have interrupted a print to the same stream."""
    os.write(2, f"\n{text}\n".encode())


def require_spark() -> None:
    """Raise MissingPackage if the extra with Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        from rivermouth.errors import MissingPackage

        raise MissingPackage("this needs Spark, and pyspark is not installed")


def start_spark(
    config: Config, shown: Console | None, secrets: Secrets, reading: Sequence[str] = ()
) -> SparkSession:
    """Start a session with the settings of the file: on this machine, or on the cluster it names.

    ``shown`` is told which slow step it is at; None: nothing is printed. ``reading`` are the
    pipelines that will read Kafka in it: so many partitions, so much memory. ``secrets`` reads what
    the login of Kafka refers to.
    """
    from rivermouth.local.jars import Downloading, jars
    from rivermouth.local.scratch import scratch_root

    # py4j prints the traceback of each question to a JVM that is gone; we tell of it in one line.
    logging.getLogger().addFilter(lambda record: record.module != "java_gateway")
    if shown is not None:
        jars("spark", progress=Downloading(sys.stderr))
        shown.print("starting Spark…")
    from pyspark.logger import PySparkLogger

    from rivermouth.cluster.session import start_on_cluster
    from rivermouth.local.session import start_session

    # Spark logs what it refuses of a query, with the stack of the JVM, when somebody reads of it.
    for each in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(each).setLevel(logging.CRITICAL)
    start = start_on_cluster if config.master else start_session
    return start(scratch_root(), {**memory_of(config, secrets, reading), **config.spark})


@contextmanager
def local_spark(
    config: Config, shown: Console | None, secrets: Secrets, reading: Sequence[str]
) -> Iterator[Spark]:
    """A local session, which is started when it is needed, and ends with the block.

    See ``start_spark``. Spark handles SIGINT where the main thread starts it.
    """
    from rivermouth.spark.session import Spark

    with ExitStack() as resources:

        def start() -> SparkSession:
            session = start_spark(config, shown, secrets, reading)
            from rivermouth.local.session import ending

            resources.enter_context(ending(session))
            return session

        yield Spark(start)


@contextmanager
def session_for(
    config: Config, given: SparkSession | None, secrets: Secrets, reading: Sequence[str]
) -> Iterator[Spark]:
    """A session for the block: ``given``, or the one of this process or of the platform.

    Where there is none, a local one is started and ended, if it is needed. Nothing is printed.
    ``secrets``, ``reading``: see ``start_spark``.
    """
    from rivermouth.config import Catalog
    from rivermouth.spark.session import Spark

    if given is not None:
        yield Spark.of(given)
    elif isinstance(config.warehouse, Catalog) or spark_runs():
        yield Spark.of(session_there())
    else:
        with local_spark(config, None, secrets, reading) as spark:
            yield spark


def spark_runs() -> bool:
    """Whether Spark runs in this process, or a session of Spark Connect."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkContext._active_spark_context is not None
    return active or SparkSession.getActiveSession() is not None


def session_there() -> SparkSession:
    """The session of this process or of the platform; who asks for it does not end it."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def platform_with(session: SparkSession | None, master: str = "") -> Platform:
    """What the session can do; None: one that is to be started, on a cluster if there is one."""
    from rivermouth.config.platforms import CLUSTER, LOCAL, platform_of

    if session is None:
        return CLUSTER if master else LOCAL
    connect = ".connect." in type(session).__module__
    # Of a session with a JVM the master tells whether its executors are this machine.
    one_host = connect or (session.sparkContext.master or "").startswith("local")
    return platform_of(connect=connect, one_host=one_host)


def check_endless(platform: Platform) -> None:
    """Raise ConfigError where a run cannot go on until it is stopped."""
    from rivermouth.config.platforms import SERVERLESS, Capability
    from rivermouth.errors import ConfigError

    if not platform.has(Capability.CONTINUOUS):
        line = f"{SERVERLESS.name} compute runs no endless query: leave out --continuous"
        raise ConfigError((line,))


def memory_of(config: Config, secrets: Secrets, reading: Sequence[str]) -> Mapping[str, str]:
    """The memory that the partitions of these pipelines need, as far as Kafka tells them."""
    from rivermouth.errors import SetupError, SourceError
    from rivermouth.kafka.client import Kafka
    from rivermouth.kafka.facts import with_topics
    from rivermouth.local.machine import MEMORY, cache_settings, heap_settings, memory_mb

    if not reading:
        return {}
    topics: list[str] = []
    counts: Mapping[str, int] = {}
    with suppress(SourceError, SetupError):  # the run meets it again, and tells
        kafka = Kafka(config.kafka.revealed(secrets), timeout_s=3.0)
        pipelines = [with_topics(kafka, config.pipelines[name], None) for name in reading]
        topics = [topic for each in pipelines for topic in each.source.topics]
        counts = kafka.partition_counts({*topics})
    known = [counts.get(each, 0) for each in topics] if counts else None
    if config.master:
        return cache_settings(known, str(config.spark.get("spark.executor.memory", "1g")))
    return heap_settings(known, memory_mb(), str(config.spark.get(MEMORY, "")))


@contextmanager
def local_run(
    config: Config,
    shown: Console,
    secrets: Secrets,
    reading: Sequence[str] = (),
    *,
    continuous: bool = False,
    audit: bool = False,
) -> Iterator[Run]:
    """A run in a local session, which is started when it is needed, and ends with the block.

    Raises MissingPackage. ``secrets``, ``reading``: see ``start_spark``.
    """
    from rivermouth.local.scratch import scratch_root

    require_spark()
    from rivermouth.run.run import Run

    with local_spark(config, shown, secrets, reading) as spark:
        yield Run(
            config,
            spark,
            scratch_root(),
            continuous=continuous,
            audit=audit,
            platform=platform_with(None, config.master),
            secrets=secrets,
        )
