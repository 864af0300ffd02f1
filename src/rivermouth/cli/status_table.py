"""The status of all pipelines as a table for people."""

from __future__ import annotations

from rivermouth.cli.text_table import text_table
from rivermouth.operate.status import Status


def render(found: Status) -> str:
    """A table, at most 80 columns wide; the reasons follow it."""
    headers = ("pipeline", "state", "entry", "version", "lag (offsets)", "lag (time)", "table")
    rows = [
        (
            each.name,
            each.state.value,
            _number(each.sequence),
            _number(each.table_version),
            _number(each.lag_messages),
            "-" if each.lag_seconds is None else _duration(each.lag_seconds),
            each.table,
        )
        for each in found.pipelines
    ]
    reasons = [f"{each.name}: {each.reason}" for each in found.pipelines if each.reason]
    accepted = [
        f"{each.name}: accepted: {kind}, in entry {entry}"
        for each in found.pipelines
        for kind, entry in each.accepted
    ]
    return "\n".join([text_table(headers, rows, numbers=(2, 3, 4, 5)), *reasons, *accepted])


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
