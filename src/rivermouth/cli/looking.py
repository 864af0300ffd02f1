"""``plan``, ``preview``, ``peek``, ``history``, ``at``: commands that look, most without a JVM."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from rivermouth.cli import completing
from rivermouth.cli.settings import (
    AsJson,
    ConfigFile,
    PipelineName,
    TopicName,
    known_secrets,
    load_config,
    load_local,
)
from rivermouth.errors import ConfigError

if TYPE_CHECKING:
    from rivermouth.config import Config, Pipeline
    from rivermouth.operate.peek import From
    from rivermouth.protocol.offsets import TopicPartition

Most = Annotated[
    int, typer.Option("-n", min=0, metavar="N", help="The newest N commits; 0: all of them.")
]
SinceTime = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only commits from then on: 2026-11-21T06:00:00Z, or 1d for a day ago.",
    ),
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Comma-separated values, a line a commit.")]
Time = Annotated[
    str, typer.Option("--time", metavar="TIME", help="2026-11-21T06:00:00Z, or 1d for a day ago.")
]
Offset = Annotated[
    str,
    typer.Option(
        "--offset",
        metavar="TOPIC:PARTITION:OFFSET",
        help="The version from which on this record had been read.",
    ),
]
Version = Annotated[
    int | None, typer.Option("--version", min=0, metavar="V", help="A version of the table.")
]
Against = Annotated[
    int | None,
    typer.Option("--diff", min=0, metavar="V", help="What was read since this version."),
]
Shown = Annotated[int, typer.Option("-n", min=0, metavar="N", help="At most N records; 0: all.")]
Begin = Annotated[
    str,
    typer.Option(
        "-o",
        metavar="WHERE",
        help="Begin in each partition at beginning, at an offset, or -10: at the last ten.",
    ),
]
FromTime = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Begin at the first records from then on: 2026-11-21T06:00:00Z, or 1h ago.",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Only records with this key, as text.")
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what comes, until it is interrupted.")
]
Raw = Annotated[bool, typer.Option("--raw", help="The bytes of the value, not decoded.")]
By = Annotated[
    str,
    typer.Option(
        "--pipeline",
        metavar="NAME",
        help="Decode as this pipeline does.",
        autocompletion=completing.pipelines,
    ),
]
_OFFSET = re.compile(r"(.+):(\d+):(\d+)", re.ASCII)


def history(
    file: ConfigFile,
    pipeline: PipelineName,
    most: Most = 20,
    since: SinceTime = "",
    json: AsJson = False,
    csv: AsCsv = False,
) -> None:
    """Show the commits of a pipeline's table, the newest first.

    Offsets and records of each, what others did to the table, and what was taken back.
    """
    config = load_config(file)
    name = config.named(pipeline)
    from rivermouth.operate.history import history as ask
    from rivermouth.run.histories import history_csv, history_table
    from rivermouth.run.text import as_json

    moment = _moment(since, "--since")
    found = ask(config, name, most or None, moment, known_secrets())
    if json:
        as_json(found.as_dict())
    elif csv:
        typer.echo(history_csv(found), nl=False)
    else:
        typer.echo(history_table(found))


def at(
    file: ConfigFile,
    pipeline: PipelineName,
    moment: Time = "",
    offset: Offset = "",
    version: Version = None,
    diff: Against = None,
    json: AsJson = False,
) -> None:
    """Show where a pipeline stood: at a time, version or offset.

    The version of its table, the next offset of each partition, and SQL to paste. Default: now.
    """
    if sum((bool(moment), bool(offset), version is not None)) > 1:
        raise ConfigError(("at: write one of --time, --offset and --version",))
    moment_ms, place = _moment(moment, "--time"), _record_of(offset)
    config = load_config(file)
    name = config.named(pipeline)
    from rivermouth.operate.standing import Standings
    from rivermouth.run.histories import standing_table
    from rivermouth.run.text import as_json

    stood = Standings(config, name, known_secrets())
    if place is not None:
        found = stood.at_offset(*place)
    elif moment_ms is not None:
        found = stood.at_time(moment_ms)
    else:
        found = stood.at_version(stood.newest if version is None else version)
    earlier = None if diff is None else stood.at_version(diff)
    if json:
        as_json(found.as_dict() if earlier is None else found.difference(earlier))
    else:
        typer.echo(standing_table(found, earlier))


def _moment(text: str, option: str) -> float | None:
    from rivermouth.run.outcome import read_moment

    return read_moment(text, time.time(), option) if text else None


def _record_of(text: str) -> tuple[TopicPartition, int] | None:
    """The place and the offset of a record; None where the text is empty. Raises ConfigError."""
    if not text:
        return None
    from rivermouth.protocol.offsets import TopicPartition

    found = _OFFSET.fullmatch(text)
    if found is None:
        raise ConfigError((f"--offset {text}: write topic:partition:offset, as orders:0:1200",))
    return TopicPartition(found[1], int(found[2])), int(found[3])


def plan(file: ConfigFile, json: AsJson = False) -> None:
    """Show what the next run would do. Writes nothing.

    For each pipeline: state, what is done to its table, the offsets that it would read, and what
    would stop it, with the remedy. Ends with the exit code that a run would have then. Starts no
    JVM.
    """
    config = load_config(file)
    from rivermouth.operate.plan import plan as ask
    from rivermouth.run.plans import plan_text
    from rivermouth.run.report import exit_code
    from rivermouth.run.text import as_json

    found = ask(config, secrets=known_secrets())
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(plan_text(found))
    raise typer.Exit(exit_code(found.pipelines))


def peek(
    file: ConfigFile,
    name: TopicName,
    most: Shown = 20,
    offset: Begin = "",
    moment: FromTime = "",
    key: Key = None,
    follow: Follow = False,
    raw: Raw = False,
    pipeline: By = "",
) -> None:
    """Show single records of a topic, as JSON lines.

    By default the newest 20, decoded as the first pipeline decodes them that reads the topic, with
    the reason where it would refuse one. Joins no consumer group, starts no JVM.
    """
    begin = _from(offset, moment)
    config = load_config(file)
    import json

    from rivermouth.operate import peek as peeking

    asked = peeking.Peek(
        topic=name,
        most=most or None,
        begin=begin,
        key=None if key is None else key.encode(),
        pipeline=None if raw else _reader(config, name, pipeline),
    )

    def say(record: dict[str, object]) -> None:
        typer.echo(json.dumps(record, ensure_ascii=False, default=str))

    if not follow or offset or moment:
        for each in peeking.peek(config, asked, known_secrets()):
            say(each)
    if follow:
        peeking.follow(config, asked, known_secrets(), say)


def preview(
    file: ConfigFile,
    pipeline: PipelineName,
    most: Shown = 20,
    offset: Begin = "",
    moment: FromTime = "",
    json: AsJson = False,
) -> None:
    """Show what would become of records. Writes nothing.

    The rows that they make, or why they would be bad; by default of the newest 20 of its topics.
    Where a select or a function makes the rows, it is called in a local Spark session; else no JVM
    starts.
    """
    begin = _from(offset, moment)
    config = load_local(file)
    name, secrets = config.named(pipeline), known_secrets()
    from rivermouth.replay.preview import preview as ask
    from rivermouth.run.plans import preview_table
    from rivermouth.run.starting import local_spark
    from rivermouth.run.text import as_json, console

    shown = console(stderr=True)
    found = ask(config, name, most, begin, secrets, lambda: local_spark(config, shown, secrets, []))
    if json:
        as_json({"pipeline": name, "records": found})
    else:
        typer.echo(preview_table(found))


def _from(offset: str, moment: str) -> From:
    """Where to begin. Raises ConfigError."""
    from datetime import datetime, timezone

    from rivermouth.operate.peek import From

    if offset and moment:
        raise ConfigError(("write one of -o and --from",))
    at_ms, begins = _moment(moment, "--from"), _begin(offset)
    at = None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    return From(at, begins)


def _begin(text: str) -> int | None:
    """The offset that ``-o`` names; negative: before the end. Raises ConfigError."""
    if text in ("", "beginning"):
        return 0 if text else None
    if re.fullmatch(r"-?\d+", text, re.ASCII):
        return int(text)
    raise ConfigError((f"-o {text}: write beginning, an offset, or -10 for the last ten",))


def _reader(config: Config, topic: str, pipeline: str) -> Pipeline | None:
    """The pipeline that is named, or the first one that reads the topic; None: nobody does."""
    if pipeline:
        return config.pipelines[config.named(pipeline)]
    return next((e for e in config.pipelines.values() if e.source.topics.take(topic)), None)
