"""Tables of text, at most 80 columns wide, the same on a terminal and in a file. Pure."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

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
