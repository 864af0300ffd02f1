"""What the page says in words and tables, as HTML. Pure.

Names, reasons and values are of others: all text goes through ``text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from html import escape

from rivermouth.operate.history import Event
from rivermouth.report.reading import Report, Told
from rivermouth.report.series import heat, positions
from rivermouth.run.outcome import ago, proof_note, proved
from rivermouth.run.text import duration, number

STATES = {
    "OK": ("✓", "good"),
    "NEW": ("○", "calm"),
    "CATCHING_UP": ("↗", "calm"),
    "SLOW": ("▲", "warn"),
    "STALLED": ("■", "alarm"),
    "STOPPED": ("‖", "warn"),
    "BLOCKED": ("✕", "alarm"),
}
"""A sign and a colour for each word of ``status``. Others are grey."""
_OTHER = ("?", "grey")
_SHOWN = 6
"""Positions of so many partitions are in a cell."""
_REASON = 100
"""So many characters of a reason are in the overview."""
_OVERVIEW = (
    *("Pipeline", "State", "Records over time", "Lag, records", "Lag, time"),
    *("Records", "Bad", "Lost", "Newest commit", "Proved up to"),
)
_CHARTS = (
    ("records", "Records of the commits"),
    ("bytes", "Bytes that they added"),
    ("lag", "Lag in time when they were made"),
    ("between", "Time between commits"),
)


def text(value: object) -> str:
    """A text of anybody; one that may run from right to left changes nothing around it."""
    known = str(value)
    return escape(known) if known.isascii() else f"<bdi>{escape(known)}</bdi>"


def moment(ms: float) -> str:
    """A time, in UTC, to the second."""
    at = datetime.fromtimestamp(ms / 1000, timezone.utc)
    return f"<time>{at:%Y-%m-%d %H:%M:%S}</time>"


def state(word: str) -> str:
    """The word of ``status``, with its sign."""
    sign, colour = STATES.get(word, _OTHER)
    return (
        f'<span class="state {colour}"><span aria-hidden="true">{sign}</span> {text(word)}</span>'
    )


def table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: str,
    of: str = "",
) -> str:
    """Rows of HTML under headers; the first cell names its row. ``numbers`` has an ``n`` for each
    column of numbers. It scrolls by itself where it is too wide. ``of`` is the pipeline that it
    tells of.
    """
    marks = [' class="n"' if each == "n" else "" for each in numbers]
    head = "".join(
        f'<th scope="col"{mark}>{each}</th>' for each, mark in zip(headers, marks, strict=True)
    )
    body = "".join(f"<tr>{''.join(_cells(row, marks))}</tr>" for row in rows)
    inner = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
    name = escape(f"{of}: {caption}" if of else caption, quote=True)
    scrolled = f'<div class="wide" role="region" aria-label="{name}" tabindex="0">'
    return f"{scrolled}{inner}<tbody>{body}</tbody></table></div>"


def _cells(row: Sequence[str], marks: Sequence[str]) -> Iterator[str]:
    for at, (each, mark) in enumerate(zip(row, marks, strict=True)):
        yield f"<td{mark}>{each}</td>" if at else f'<th scope="row"{mark}>{each}</th>'


def overview(report: Report) -> str:
    """The table of all pipelines, and what somebody has to look at."""
    rows = [_row(at, each, report.at_ms) for at, each in enumerate(report.pipelines)]
    reasons = [
        f'<li><a href="#p{at}">{text(each.status.name)}</a>: {text(_short(why))}</li>'
        for at, each in enumerate(report.pipelines)
        if (why := each.status.reason or each.problem)
    ]
    listed = f'<ul class="reasons">{"".join(reasons)}</ul>' if reasons else ""
    return table("All pipelines", _OVERVIEW, rows, "---nnnnn--") + listed


def _short(reason: str) -> str:
    """Its beginning: the section of the pipeline has all of it."""
    return reason if len(reason) <= _REASON else f"{reason[:_REASON]}…"


def _row(at: int, each: Told, now_ms: int) -> Sequence[str]:
    found, totals, newest = each.status, each.series.totals, each.series.newest
    return (
        f'<a href="#p{at}">{text(found.name)}</a>',
        state(found.state.value),
        f'<span class="spark" data-pipeline="{at}"></span>',
        number(found.lag_messages),
        "-" if found.lag_seconds is None else duration(found.lag_seconds),
        number(totals.records),
        number(totals.bad),
        number(totals.lost),
        "-" if newest is None else moment(newest.record.timestamp_ms),
        "-" if found.sequence is None else proved(found.proof, now_ms / 1000),
    )


def section(at: int, told: Told, report: Report) -> str:
    """All of one pipeline."""
    name = text(told.status.name)
    parts = [
        f'<section id="p{at}" aria-labelledby="h{at}"><h2 id="h{at}">{name} ',
        f"{state(told.status.state.value)}</h2>",
        f'<p class="reason">{text(told.status.reason)}</p>' if told.status.reason else "",
        _facts(told, report.at_ms),
    ]
    if told.problem:
        parts.append(f'<p class="reason">Its commits cannot be read: {text(told.problem)}</p>')
    elif told.series.totals.entries:
        parts += [_over_time(at, told), _partitions(at, told), _bad(at, told)]
    else:
        parts.append("<p>No commit of it was found.</p>")
    parts += [_happened(told), _versions(told), "</section>"]
    return "".join(parts)


def _facts(told: Told, now_ms: int) -> str:
    found, now_s = told.status, now_ms / 1000
    facts = [("Table", text(found.table))]
    lag = found.lag_messages
    facts += [("Lag", "not known" if lag is None else f"{number(lag)} records")]
    if found.lag_seconds is not None:
        facts += [("Lag in time", duration(found.lag_seconds))]
    if found.held_back:
        facts += [("Behind open transactions", f"{number(found.held_back)} offsets")]
    if found.sequence is not None:
        facts += [
            ("Newest entry", f"{number(found.sequence)}, version {number(found.table_version)}")
        ]
        note = proof_note(found.proof, now_s) if found.proof else ""
        facts += [
            ("Proved up to entry", proved(found.proof, now_s) + (f"; {text(note)}" if note else ""))
        ]
    if (layout := told.layout) is not None:
        last = layout.compacted
        when = "" if last is None else ago(now_s - last.at_ms / 1000)
        facts += [("Files", text(layout.line(when)))]
    if found.way is not None and found.way.reason:
        facts += [("Commits", text(found.way))]
    if found.retrying is not None:
        facts += [("Tried again", f"{found.retrying.tries:,} times: {text(found.retrying.reason)}")]
    if found.mirror is not None:
        facts += [("Consumer group", text(found.mirror.line()))]
    facts += [("Accepted", f"{text(kind)}, in entry {entry:,}") for kind, entry in found.accepted]
    return f"<dl>{''.join(f'<div><dt>{name}</dt><dd>{it}</dd></div>' for name, it in facts)}</dl>"


def _over_time(at: int, told: Told) -> str:
    totals, newest, oldest = told.series.totals, told.series.newest, told.series.oldest
    assert newest is not None
    assert oldest is not None
    first, last = moment(oldest.record.timestamp_ms), moment(newest.record.timestamp_ms)
    which = "All" if told.whole else "The newest"
    said = [
        f"{which} {totals.commits:,} commits of the table, from {first} to {last}: "
        f"{totals.entries:,} entries, "
        f"{totals.offsets:,} offsets, {totals.records:,} records, {totals.bad:,} of them bad."
    ]
    if totals.lost:
        said.append(f"<strong>{totals.lost:,} offsets were lost:</strong> Kafka had deleted them.")
    if totals.uncounted:
        said.append(f"{totals.uncounted:,} of the records are rows or offsets that nobody counted.")
    if totals.taken_back:
        said.append(f"{totals.taken_back:,} entries were taken back later; they are in these sums.")
    charts = [_chart(at, kind, title) for kind, title in _CHARTS]
    return f'<h3>Over time</h3><p>{" ".join(said)}</p><div class="charts">{"".join(charts)}</div>'


def _chart(at: int, kind: str, title: str) -> str:
    return (
        f'<figure data-pipeline="{at}" data-chart="{kind}">'
        f"<figcaption>{title}</figcaption></figure>"
    )


def _partitions(at: int, told: Told) -> str:
    rows, left, offsets = heat(told.series)
    if not rows:
        return ""
    title = f"Offsets of {len(rows):,} partition{'' if len(rows) == 1 else 's'}"
    if left:
        title += f"; {left:,} others have fewer, {offsets:,} together"
    return f"<h3>Partitions</h3>{_chart(at, 'heat', title)}"


def _bad(at: int, told: Told) -> str:
    if not told.series.totals.bad:
        return ""
    name, meanings = told.status.name, told.pipeline.format.all_reasons
    rows = [
        (text(code or "not read"), number(sum(each)), text(meanings.get(code, "")))
        for code, each in told.codes().items()
    ]
    parts = ["<h3>Bad records</h3>", _chart(at, "codes", "Records in quarantine, by code")]
    parts.append(table("What the codes mean", ("Code", "Records", "Meaning"), rows, "-n-", name))
    if told.bad.problem:
        parts.append(f"<p>Not all codes are known: {text(told.bad.problem)}</p>")
    if told.bad.samples:
        found = [[text(each) for each in vars(it).values()] for it in told.bad.samples]
        headers = ("Record", "Code", "Reason", "Key", "Value")
        parts.append(table("Some of the records", headers, found, "-----", name))
    return "".join(parts)


def _happened(told: Told) -> str:
    name, parts = told.status.name, []
    if told.series.schema:
        rows = [(*_place(event), text(what)) for event, what in told.series.schema]
        found = table("Changes of the columns", ("Version", "Time", "What"), rows, "n--", name)
        parts.append(f"<div><h3>Columns of the table</h3>{found}</div>")
    if told.series.notable:
        others = [
            (*_place(each), text(each.what), text(each.record.engine.split(" ")[0] or "-"))
            for each in told.series.notable
        ]
        headers = ("Version", "Time", "What", "By")
        found = table("Other commits than batches", headers, others, "n---", name)
        parts.append(f"<div><h3>What happened</h3>{found}</div>")
    return f'<div class="charts">{"".join(parts)}</div>'


def _place(event: Event) -> tuple[str, str]:
    return number(event.record.version), moment(event.record.timestamp_ms)


def _versions(told: Told) -> str:
    if not told.series.versions:
        return ""
    headers = ("Version", "Time", "Entry", "What", "Offsets", "Applied", "Bad", "Next offsets")
    rows = [_version(each) for each in told.series.versions]
    caption, name = f"The newest {len(rows):,} entries", told.status.name
    return f"<h3>Offsets and versions</h3>{table(caption, headers, rows, 'n-n-nnn-', name)}"


def _version(event: Event) -> Sequence[str]:
    entry, (applied, bad, _) = event.entry, event.counted() or (None, None, None)
    assert entry is not None
    mark = {True: "", False: ", taken back", None: ", perhaps taken back"}[event.stands]
    return (
        *_place(event),
        number(entry.sequence),
        text(event.what) + mark,
        number(event.offsets),
        number(applied),
        number(bad),
        text(positions(entry, _SHOWN)),
    )
