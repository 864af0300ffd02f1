"""The status of all pipelines as it changes: a live table, or a table now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rivermouth.operate.pace import Pace, State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.text import compact, duration, note, text_table

_HEADERS = (
    "pipeline",
    "state",
    "lag\n(offsets)",
    "lag\n(time)",
    "offsets\na second",
    "caught\nup in",
    "kept\nfor",
    "newest\ncommits",
)
_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = {
    State.OK: "green",
    State.NEW: "cyan",
    State.CATCHING_UP: "cyan",
    State.SLOW: "yellow",
    State.STOPPED: "yellow",
    State.STALLED: "red",
    State.BLOCKED: "red",
}
_WIDEST = 13


def watch_table(found: Status) -> str:
    """A line for each pipeline, at most 80 columns wide, and the reasons after it."""
    rows = [_row(each) for each in found.pipelines]
    lines = [text_table(_HEADERS, rows, numbers=range(2, 7))]
    return "\n".join([*lines, *(note(e.name, e.reason) for e in found.pipelines if e.reason)])


def _row(each: PipelineStatus) -> tuple[str, ...]:
    pace, left = each.pace, each.waiting.left.seconds if each.waiting is not None else None
    rate = pace.offsets_per_s if each.state is not State.STOPPED else 0.0
    return (
        each.name if len(each.name) <= _WIDEST else f"{each.name[: _WIDEST - 1]}…",
        each.state.value,
        "-" if each.lag_messages is None else compact(each.lag_messages),
        _time(each.lag_seconds),
        "-" if rate is None else compact(int(rate)),
        _time(each.caught_up_in_s),
        _time(left),
        sparkline(pace),
    )


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def sparkline(pace: Pace) -> str:
    """A bar for each of the newest eight commits, as high as the offsets that it read."""
    read = [each.offsets for each in pace.steps][-8:]
    most = max(read, default=0)
    return "".join(_BARS[each * (len(_BARS) - 1) // most] if most else _BARS[0] for each in read)


def watch(
    ask: Callable[[], Status],
    every_s: float,
    console: Console,
    say: Callable[[Status], None] | None = None,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Show what ``ask`` finds every ``every_s`` seconds, until somebody interrupts it.

    On a terminal the table changes in its place; elsewhere each one follows on the last. ``say``
    takes the place of the table, for machines.
    """
    with suppress(KeyboardInterrupt):
        if say is None and console.is_terminal:
            with Live(console=console, auto_refresh=False, screen=False) as live:
                while True:
                    live.update(coloured(ask()), refresh=True)
                    wait(every_s)
        while True:
            found = ask()
            if say is None:
                console.print(watch_table(found), soft_wrap=True)
            else:
                say(found)
            wait(every_s)


def coloured(found: Status) -> Text:
    """The table for a terminal, with a colour for each state."""
    text = Text(watch_table(found))
    for state, colour in _COLOURS.items():
        text.highlight_regex(rf"(?m)(?<=\s){state.value}(?=\s)", colour)
    return text
