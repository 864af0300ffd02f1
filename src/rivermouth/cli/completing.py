"""``completion``, and what a shell offers for a word of a command: names of the file.

A shell starts the command at each Tab, so only the text of the file is read: not Kafka, and not
the rules of the configuration. Somebody is amid a line then: where a name cannot be told, none is
offered, and nothing is printed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

VARIABLE = "_RIVERMOUTH_COMPLETE"
"""The variable of the environment by which a shell asks what may follow."""


class Shell(str, Enum):
    """The shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


ShellName = Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Your shell.")]


def completion(ctx: typer.Context, shell: ShellName) -> None:
    """Print the script that completes commands in a shell.

    It completes commands, options, files, and the pipelines and topics of the file.
    """
    from typer.completion import shell_complete

    _know_shells()
    command = ctx.find_root().command
    shell_complete(command, {}, "rivermouth", VARIABLE, f"source_{shell.value}")


def prepare() -> None:
    """Make typer answer a shell, where one asks."""
    if VARIABLE in os.environ:
        _know_shells()


def _know_shells() -> None:
    """Make the shells known to typer, which else knows none without its own two options."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()


def pipelines(ctx: typer.Context) -> list[str]:
    """The pipelines of the file."""
    return [*_sections(ctx)]


def selection(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a list with commas may become by one more pipeline of the file."""
    chosen, comma, _ = incomplete.rpartition(",")
    left = (name for name in _sections(ctx) if name not in chosen.split(","))
    return [f"{chosen}{comma}{name}" for name in left]


def topics(ctx: typer.Context) -> list[str]:
    """The topics that the pipelines of the file name; a pattern names none."""
    found = (topic for each in _sections(ctx).values() for topic in _topics_of(each))
    return [*dict.fromkeys(found)]


def _topics_of(pipeline: Any) -> Iterator[str]:
    source = pipeline.get("source") if isinstance(pipeline, dict) else None
    if not isinstance(source, dict):
        return
    given = source.get("topics") or str(source.get("subscribe") or "").split(",")
    if isinstance(given, dict):
        given = given.get("assign")
    for each in given if isinstance(given, (list, dict)) else ():
        name = str(each).strip()
        if name and "${" not in name:
            yield name


def _sections(ctx: typer.Context) -> dict[str, Any]:
    """The pipelines of the file that the line names; empty where they cannot be read."""
    from ruamel.yaml import YAML

    try:
        # Where an option has no value yet, typer leaves the arguments as they are written.
        named = ctx.params["file"] or ctx.args[0]
        # The shell has not replaced variables and ~ yet.
        file = Path(os.path.expandvars(named)).expanduser()
        found = YAML(typ="safe", pure=True).load(file)["pipelines"]
        return {str(name): each for name, each in found.items()}
    except Exception:  # whatever is wrong with the file, its command will tell
        return {}
