"""``run``: reads Kafka into Delta; reports the result as text, JSON and exit code."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, Select, known_secrets, load_local
from rivermouth.run.starting import Stop, local_run

if TYPE_CHECKING:
    from rich.console import Console

    from rivermouth.config import Config
    from rivermouth.monitor.telling import Asked
    from rivermouth.protocol.offsets import Position, TopicPartition
    from rivermouth.run.outcome import Report
    from rivermouth.run.progress import Behind

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


class Log(str, Enum):
    """How a run writes its log."""

    TEXT = "text"
    JSON = "json"


LogFormat = Annotated[
    Log,
    typer.Option("--log", help="Lines for people, or one JSON object for each event."),
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics",
        metavar="[HOST]:PORT",
        help="Serve figures for Prometheus at /metrics, for example on :9464.",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        dir_okay=False,
        help="Write the same at the end of the run, for the textfile collector.",
    ),
]
Otel = Annotated[
    bool,
    typer.Option("--otel", help="Send figures by OpenTelemetry, as its variables OTEL_… say."),
]

_STOPPING = "stopping after the current batch (Ctrl-C again aborts)"
_ABORTED = "aborted; the next run reads from the log what was committed"


def run(
    file: ConfigFile,
    select: Select = "",
    continuous: Continuous = False,
    audit: Audit = False,
    log: LogFormat = Log.TEXT,
    metrics: Metrics = "",
    metrics_file: MetricsFile = None,
    otel: Otel = False,
    json: AsJson = False,
) -> None:
    """Bring the tables up to date.

    A pipeline that fails does not stop the others. SIGTERM or Ctrl-C ends the run after the
    current batch; a second Ctrl-C aborts at once, which is safe too.
    """
    config = load_local(file)
    names = config.selected(select)
    from rivermouth.local.commands import typed
    from rivermouth.monitor.telling import Asked
    from rivermouth.run.outcome import ended
    from rivermouth.run.text import as_json, console

    shown = console(stderr=json)
    stop = Stop(_STOPPING, _ABORTED)
    stop.listen()
    asked = Asked(continuous, log is Log.JSON, metrics, metrics_file, otel)
    report = _run(config, names, shown, stop, asked, audit=audit)
    if not asked.json:
        shown.print()
        # What was told beside live rows is far up in a terminal; a log has it as it was told.
        end = ended(report.pipelines, stopped=report.stopped, shown_before=not shown.is_terminal)
        following = f". Next: {typed('verify', file)}" if report.ok else ""
        shown.print(f"{end}{following}", soft_wrap=True)
    if json:
        as_json(report.as_dict())
    raise typer.Exit(report.exit_code)


def _run(
    config: Config, names: Sequence[str], shown: Console, stop: Stop, asked: Asked, *, audit: bool
) -> Report:
    from rich.console import Console

    from rivermouth.monitor.telling import telling
    from rivermouth.run.outcome import Report

    secrets, behind = known_secrets(), _behind(config) if asked.continuous else None
    steps = Console(quiet=True) if asked.json else shown
    with local_run(
        config, steps, secrets, names, continuous=asked.continuous, audit=audit
    ) as pipelines:
        if stop.event.is_set():
            return Report((), stopped=True)
        with telling(config, secrets, asked, shown, behind) as events:
            reports = pipelines.pipelines(names, events, stop.event)
    return Report(tuple(reports), stop.event.is_set())


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
