"""The history of a pipeline, and where it stood, as tables for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime, timezone

from rivermouth.operate.history import Event, History
from rivermouth.operate.standing import Standing
from rivermouth.run.text import number, text_table

_COLUMNS = ("version", "time", "entry", "what", "offsets", "applied", "bad", "no row", "by")
_NUMBERS = (0, 2, 4, 5, 6, 7)
_CSV = (
    "version",
    "committed_at",
    "sequence",
    "what",
    "stands",
    "offsets",
    "applied",
    "quarantined",
    "skipped",
    "by",
    "commit",
)


def history_table(found: History) -> str:
    """A line for each commit, at most 80 columns wide, and what its marks mean."""
    if not found.events:
        return f"{found.pipeline}: no commit of {found.table}"
    lines = [text_table(_COLUMNS, [_row(each) for each in found.events], numbers=_NUMBERS)]
    stands = {each.stands for each in found.events}
    if False in stands:
        lines.append("(-): a later RESTORE, TRUNCATE or overwrite took its rows back")
    if None in stands:
        lines.append("(?): a RESTORE to a time came later, and nobody can tell how far back")
    return "\n".join(lines)


def _row(each: Event) -> tuple[str, ...]:
    applied, bad, no_row = each.counted() or (None, None, None)
    mark = {True: "", False: " (-)", None: " (?)"}[each.stands]
    return (
        number(each.record.version),
        _time(each.record.timestamp_ms).replace("T", " ").removesuffix("Z"),
        number(None if each.entry is None else each.entry.sequence),
        each.what + mark,
        *map(number, (each.offsets, applied, bad, no_row)),
        _program(each.record.engine),
    )


def _program(engine: str) -> str:
    """``Apache-Spark/4.2.0 Delta-Lake/4.4.0`` in short: ``Apache-Spark/4.2.0``."""
    return engine.split(" ")[0] or "-"


def history_csv(found: History) -> str:
    """The same as CSV, with names in the first line, times in UTC, and nothing for null."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV)
    for each in found.events:
        facts = each.as_dict()
        facts["committed_at"] = _time(each.record.timestamp_ms)
        writer.writerow(["" if facts[name] is None else facts[name] for name in _CSV])
    return text.getvalue()


def _time(ms: int) -> str:
    """To the second, in UTC."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def standing_table(found: Standing, earlier: Standing | None = None) -> str:
    """Version, time and positions, the statement to paste, and what differs from ``earlier``."""
    return "\n".join(_stood(found) if earlier is None else _differs(found, earlier))


def _stood(found: Standing) -> Iterator[str]:
    yield f"version {found.version:,}, {_time(found.committed_at_ms)}, entry {found.sequence:,}"
    rows = [
        (place.topic, str(place.partition), number(at))
        for place, at in sorted(found.position.items())
    ]
    yield text_table(("topic", "partition", "next offset"), rows, numbers=(1, 2))
    yield found.sql


def _differs(found: Standing, earlier: Standing) -> Iterator[str]:
    yield f"from version {earlier.version:,}, {_time(earlier.committed_at_ms)}"
    yield f"to version {found.version:,}, {_time(found.committed_at_ms)}"
    rows = [
        (
            place.topic,
            str(place.partition),
            *map(number, pair),
            number((pair[1] or 0) - (pair[0] or 0)),
        )
        for place, pair in found.since(earlier).items()
    ]
    headers = ("topic", "partition", "from", "to", "offsets")
    yield text_table(headers, rows, numbers=(1, 2, 3, 4)) if rows else "no position differs"
