"""Values as text and JSON: numbers, errors, lines of at most 80 columns."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Any

import typer
from rich.console import Console

from rivermouth.errors import RivermouthError

_INDENT = "  "


def console(*, stderr: bool = False) -> Console:
    """A console for people: colour only on a terminal, and never with NO_COLOR."""
    return Console(stderr=stderr, highlight=False, markup=False)


def compact(number: int | None) -> str:
    """``999``, ``12.3k``, ``4.56M``: at most five characters. Unknown is ``?``."""
    if number is None:
        return "?"
    for limit, unit in ((1_000, ""), (1_000_000, "k"), (1_000_000_000, "M")):
        if number < limit:
            return f"{number}" if not unit else f"{_three(number * 1_000 / limit)}{unit}"
    return f"{_three(number / 1_000_000_000)}G"


def _three(value: float) -> str:
    """Three significant digits, truncated and not rounded: 999,999 must not become 1000k."""
    text = f"{value:.6f}"
    return text[:4].rstrip(".") if value < 1_000 else text.partition(".")[0]


def number(value: int | None) -> str:
    """A whole number with commas; unknown is ``-``."""
    return "-" if value is None else f"{value:,}"


def duration(seconds: float) -> str:
    """``3.5 d``, ``12.0 h``, ``7.2 m``, ``0.4 s``: one digit in the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def failure(name: str, error: RivermouthError, retries: int = 0) -> str:
    """An error of a pipeline in a few short lines, the remedy last.

    ``retries`` is how often the pipeline was tried again.
    """
    where = f" {error.where}:" if error.where else ""
    facts = [
        f"{error.code}{where} {error.what}",
        f"expected {error.expected}" if error.expected else "",
        f"found {error.found}" if error.found else "",
        f"tried again {retries} time(s)" if retries else "",
        f"to do: {error.remedy}" if error.remedy else "",
    ]
    lines = [wrapped(fact, _INDENT) for fact in facts if fact]
    return "\n".join([f"FAILED {name}", *lines])


def wrapped(text: str, indent: str, first: str | None = None) -> str:
    """The text in lines of at most 80 columns. A word, such as a path, is never broken."""
    return textwrap.fill(
        text,
        80,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_json(value: Any) -> None:
    """Print one JSON object; a value that has no JSON type becomes text."""
    json.dump(value, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line on standard error: what the command waits for."""
    typer.echo(text, err=True)
