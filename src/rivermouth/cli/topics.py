"""``topic``: what a topic of the configured cluster holds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from rivermouth.cli.settings import AsJson, ConfigFile, known_secrets, load_config
from rivermouth.errors import ConfigError

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="A topic of the configured cluster.")]
AtTime = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Also the first offset of each partition from that time on: 2026-11-01T06:00:00Z.",
    ),
]


def topic(file: ConfigFile, name: Topic, at: AtTime = "", json: AsJson = False) -> None:
    """Show what a topic holds, and who reads it.

    Leader, replicas and offsets of each partition; position and lag of each pipeline that reads it;
    and when retention may delete the next record that it must read. Starts no JVM.
    """
    if not name:
        raise ConfigError(("TOPIC: write the name of a topic",))
    moment = read_time(at)
    config = load_config(file)
    from rivermouth.cli.render import as_json
    from rivermouth.cli.topic_table import render
    from rivermouth.operate.topic import topic as ask

    found = ask(config, name, at=moment, secrets=known_secrets())
    if json:
        as_json(found.as_dict())
    else:
        typer.echo(render(found))


def read_time(text: str) -> datetime | None:
    """The time that ``--at`` names, as in ``source.start``; None where it is empty.

    Raises ConfigError.
    """
    if not text:
        return None
    from rivermouth.config.problems import Refused
    from rivermouth.config.start import read_start

    try:
        moment = read_start(text).edge
    except Refused:
        moment = "earliest"
    if isinstance(moment, datetime):
        return moment
    form = "write a time with its zone, from 1970 on, as 2026-11-01T06:00:00Z"
    raise ConfigError((f"--at {text}: {form}",))
