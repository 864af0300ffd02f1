"""Values as text and JSON: numbers, errors, tables, lines of at most 80 columns."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rivermouth.errors import RivermouthError
from rivermouth.operate.sql import QueryResult

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


def note(name: str, text: str) -> str:
    """``name: text`` in lines of at most 80 columns; those after the first one are indented."""
    return wrapped(f"{name}: {text}", _INDENT, "")


def as_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON object, in one line without ``indent``; a value that has no JSON type becomes
    text.
    """
    json.dump(value, sys.stdout, indent=indent, default=str)
    sys.stdout.write("\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line on standard error: what the command waits for."""
    typer.echo(text, err=True)


WIDTH = 80


def text_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[int] = (),
    width: int = WIDTH,
) -> str:
    """Rows under headers, at most ``width`` columns wide; long cells are folded.

    ``numbers`` are the indices of the columns that are aligned to the right.
    """
    # With the divider of the box two spaces between columns, and not three.
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for index, header in enumerate(headers):
        right = index in numbers
        table.add_column(Text(header), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    shown = io.StringIO()
    Console(file=shown, width=width, color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


def query_table(result: QueryResult) -> str:
    """The answer for people, 80 columns wide; null is shown as ``null``."""
    numbers = [n for n, each in enumerate(result.arrow.schema) if _is_number(each.type)]
    rows = [[_cell(value) for value in row] for row in result.rows()]
    return text_table(result.columns, rows, numbers=numbers)


def _is_number(kind: pa.DataType) -> bool:
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    )


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
