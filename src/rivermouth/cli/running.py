"""``run``: reads Kafka into Delta; reports the result as text, JSON and exit code."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    Select,
    known_secrets,
    load_local,
    selected,
)
from rivermouth.cli.stopping import Stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from rivermouth.cli.progress import Behind
    from rivermouth.config import Config
    from rivermouth.protocol.offsets import Position, TopicPartition
    from rivermouth.run.report import PipelineReport
    from rivermouth.run.run import Run

Continuous = Annotated[
    bool,
    typer.Option(
        "--continuous/--once",
        help="Run until stopped, or only up to the end offsets of the start.",
    ),
]

Audit = Annotated[
    bool,
    typer.Option(
        "--audit",
        help="Check all entries in the logs of the tables at the start, not only the newest.",
    ),
]

_STOPPING = "stopping after the current batch (Ctrl-C again aborts)"
_ABORTED = "aborted; the next run reads from the log what was committed"


def run(
    file: ConfigFile,
    select: Select = "",
    continuous: Continuous = False,
    audit: Audit = False,
    json: AsJson = False,
) -> None:
    """Bring the tables up to date.

    A pipeline that fails does not stop the others. SIGTERM or Ctrl-C ends the run after the
    current batch; a second Ctrl-C aborts at once, which is safe too.
    """
    config = load_local(file)
    names = selected(config, select)
    from rivermouth.cli.outcome import ended
    from rivermouth.cli.render import as_json, console
    from rivermouth.local.typed import typed
    from rivermouth.run.report import exit_code

    shown = console(stderr=json)
    stop = Stop(_STOPPING, _ABORTED)
    stop.listen()
    reports = _run(config, names, shown, stop, continuous=continuous, audit=audit)
    shown.print()
    # What was told beside live rows is far up in a terminal; a log has it as it was told.
    end = ended(reports, stopped=stop.event.is_set(), told=not shown.is_terminal)
    following = "" if exit_code(reports) else f". Next: {typed('verify', file)}"
    shown.print(f"{end}{following}", soft_wrap=True)
    if json:
        as_json({"pipelines": [each.as_dict() for each in reports]})
    raise typer.Exit(exit_code(reports))


def require_spark() -> None:
    """Raise MissingPackage if the extra with Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        from rivermouth.errors import MissingPackage

        raise MissingPackage("the command needs Spark, and pyspark is not installed")


def start_spark(config: Config, shown: Console, reading: Sequence[str] = ()) -> SparkSession:
    """Start a local session with the settings of the file; print which slow step it is at.

    ``reading`` are the pipelines that will read Kafka in it: so many partitions, so much memory.
    """
    from rivermouth.local.jars import Downloading, jars
    from rivermouth.local.scratch import scratch_root

    # py4j prints the traceback of each question to a JVM that is gone; we tell of it in one line.
    logging.getLogger().addFilter(lambda record: record.module != "java_gateway")
    jars("spark", progress=Downloading(sys.stderr))
    shown.print("starting Spark…")
    from pyspark.logger import PySparkLogger

    from rivermouth.local.session import start_session

    # Spark logs what it refuses of a query, with the stack of the JVM, when somebody reads of it.
    for each in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(each).setLevel(logging.CRITICAL)
    return start_session(scratch_root(), {**memory_of(config, reading), **config.spark})


def memory_of(config: Config, reading: Sequence[str]) -> Mapping[str, str]:
    """The memory that the partitions of these pipelines need, as far as Kafka tells them."""
    from rivermouth.errors import SetupError, SourceError
    from rivermouth.kafka.client import Kafka
    from rivermouth.kafka.facts import with_topics
    from rivermouth.local.heap import MEMORY, heap_settings
    from rivermouth.local.machine import memory_mb

    if not reading:
        return {}
    topics: list[str] = []
    counts: Mapping[str, int] = {}
    with suppress(SourceError, SetupError):  # the run meets it again, and tells
        kafka = Kafka(config.kafka.revealed(known_secrets()), timeout_s=3.0)
        pipelines = [with_topics(kafka, config.pipelines[name], None) for name in reading]
        topics = [topic for each in pipelines for topic in each.source.topics]
        counts = kafka.partition_counts({*topics})
    known = [counts.get(each, 0) for each in topics] if counts else None
    return heap_settings(known, memory_mb(), str(config.spark.get(MEMORY, "")))


@contextmanager
def local_run(
    config: Config,
    shown: Console,
    reading: Sequence[str] = (),
    *,
    continuous: bool = False,
    audit: bool = False,
) -> Iterator[Run]:
    """A run in a local session, which ends with the block. Raises MissingPackage.

    ``reading``: see ``start_spark``.
    """
    from rivermouth.local.scratch import scratch_root

    require_spark()
    session = start_spark(config, shown, reading)
    from rivermouth.local.session import ending
    from rivermouth.run.run import Run

    with ending(session):
        yield Run(
            config,
            session,
            scratch_root(),
            continuous=continuous,
            audit=audit,
            secrets=known_secrets(),
        )


def _run(
    config: Config,
    names: Sequence[str],
    shown: Console,
    stop: Stop,
    *,
    continuous: bool,
    audit: bool,
) -> list[PipelineReport]:
    from rivermouth.cli.progress import listener

    with local_run(config, shown, names, continuous=continuous, audit=audit) as pipelines:
        stop.listen()
        if stop.event.is_set():
            return []
        with listener(shown, _behind(config) if continuous else None) as events:
            return pipelines.pipelines(names, events, stop.event)


def _behind(config: Config) -> Behind:
    """The lag of a position, for the display of a continuous run."""
    from rivermouth.errors import SetupError, SourceError
    from rivermouth.kafka.client import Kafka
    from rivermouth.protocol.kafka_facts import behind

    any_pattern = any(each.source.topics.pattern for each in config.pipelines.values())
    # Created at the first question: if the client refuses an option, the lag is unknown too.
    secrets = known_secrets()
    connected = cache(lambda: Kafka(config.kafka.revealed(secrets), timeout_s=1.0))

    def there(position: Position) -> list[TopicPartition]:
        """Its partitions without those of topics that are gone: a ledger keeps them."""
        topics = {each.topic for each in position}
        gone = connected().missing(topics) if any_pattern else frozenset()
        return [each for each in position if each.topic not in gone]

    def ask(position: Position) -> int | None:
        try:
            return behind(position, connected().watermarks(there(position)))
        except (SourceError, SetupError):
            return None

    return ask
