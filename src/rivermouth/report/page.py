"""The page: one file of HTML, which asks nothing of any network.

Scripts and styles are named by their hashes, so no other one is carried out, whatever a record
says. The data are JSON in a script that is none.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from rivermouth import __version__
from rivermouth.report.markup import moment, overview, section, text
from rivermouth.report.reading import Report, Told
from rivermouth.report.series import as_columns, heat

_CODES = 5
"""So many codes have a colour of their own."""


def page(report: Report, refresh_s: int = 0) -> str:
    """The page as text. ``refresh_s``: it asks for itself again after so many seconds, which only
    a page that is served can do; 0: never.
    """
    style = _asset("uPlot.min.css") + _asset("page.css")
    scripts = [_asset("uPlot.iife.min.js"), _asset("page.js")]
    listed = enumerate(report.pipelines)
    return Template(_asset("page.html")).substitute(
        title=text(report.name),
        name=escape(report.name),
        policy=_policy(style, scripts, refresh_s),
        refresh=refresh_s,
        style=style,
        links="".join(f'<li><a href="#p{at}">{text(e.status.name)}</a></li>' for at, e in listed),
        made=moment(report.at_ms),
        most=f"{report.most:,}",
        overview=overview(report),
        sections="".join(section(at, e, report) for at, e in enumerate(report.pipelines)),
        version=__version__,
        data=embedded([facts(each) for each in report.pipelines]),
        scripts="".join(f"<script>{each}</script>" for each in scripts),
    )


def embedded(data: Any) -> str:
    """JSON that ends no script, whatever texts are in it."""
    tight = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return tight.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def facts(told: Told) -> dict[str, Any]:
    """What the charts of one pipeline show."""
    series = told.series
    rows, _, _ = heat(series)
    codes = [*told.codes().items()]
    shown = codes[:_CODES]
    if others := [each for _, each in codes[_CODES:]]:
        shown.append(("others", [sum(each) for each in zip(*others, strict=True)]))
    return {
        "name": told.status.name,
        **as_columns(series.sums),
        "codes": [[code or "not read", each] for code, each in shown],
        "heat": {
            "from": series.skew.from_ms // 1000,
            "width": series.skew.width_ms // 1000,
            "rows": rows,
        },
        "marks": [
            [each.record.timestamp_ms // 1000, each.what]
            for each in reversed(series.notable)
            if each.entry is not None or "COLUMN" in each.what or each.what == "RESTORE"
        ],
    }


def _policy(style: str, scripts: list[str], refresh_s: int) -> str:
    hashes = " ".join(map(_hash, scripts))
    reached = "; connect-src 'self'" if refresh_s else ""
    own = f"script-src {hashes}; style-src {_hash(style)}; img-src data:"
    return f"default-src 'none'; {own}{reached}"


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _asset(name: str) -> str:
    return (files("rivermouth.report") / "assets" / name).read_text(encoding="utf-8")
