"""Draw the dashboard as SVG: its widgets in its grid, with the answers to their queries.

    python tools/draw_dashboard.py DASHBOARD.lvdash.json ANSWERS.json PICTURE.svg

Databricks draws it differently, with the same widgets, titles, columns and values. The answers are
one JSON object, ``{widget: {"columns": [name, …], "rows": [[value, …], …]}}``, with times as ISO
text in UTC. ``python -m tests.bundle.asking CONFIG ANSWERS.json`` makes them.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import Any

WIDTH, COLUMNS, ROW, GAP, MARGIN, PAD = 900, 6, 28, 10, 14, 12
COLOURS = ("#1f6f8b", "#e08e45", "#5b8c5a", "#a23b72", "#6b5b95", "#8d6e63")
INK, FAINT, LINE = "#1d2b33", "#66757d", "#dfe5e8"
CHARACTER = 0.53  # the average width of a character, as a share of the font size
MINUTE_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360)


@dataclass(frozen=True)
class Box:
    """A rectangle of the picture, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Answer:
    """What a widget's query answered."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def picked(self, encodings: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
        """The rows, with only the columns of these encodings."""
        places = [self.columns.index(each["fieldName"]) for each in encodings]
        return [[row[place] for place in places] for row in self.rows]


def text(x: float, y: float, label: object, size: int = 11, **style: object) -> str:
    """One line of text; ``y`` is its base line."""
    attributes = {"font-size": size, "fill": INK, **style}
    listed = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" {listed}>{escape(str(label))}</text>'


def rule(x1: float, x2: float, y: float) -> str:
    """A thin horizontal line."""
    return f'<path d="M{x1:.1f} {y:.1f}H{x2:.1f}" stroke="{LINE}"/>'


def block(box: Box, fill: str, radius: float = 0, stroke: str = "none") -> str:
    """A filled rectangle."""
    size = f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"'
    return f'<rect x="{box.x:.1f}" y="{box.y:.1f}" {size} fill="{fill}" stroke="{stroke}"/>'


def shown(value: Any) -> str:
    """A value as text: numbers with separators, times to the second."""
    if isinstance(value, (int, float)):
        return f"{value:,}"
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return value[:19].replace("T", " ")
    return "" if value is None else str(value)


def fitted(label: str, width: float, size: int) -> str:
    """The text, shortened to ``width``."""
    most = max(1, int(width / (size * CHARACTER)))
    return label if len(label) <= most else f"{label[: most - 1]}…"


def minutes(moment: str) -> float:
    """An ISO time as minutes since 1970."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() / 60


def steps(top: float) -> list[float]:
    """At most six round numbers, from 0 to at least ``top``."""
    rough = max(top / 4, 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * each for each in (1, 2, 5, 10) if unit * each >= rough)
    return [step * number for number in range(math.ceil(top / step) + 1)]


class Picture:
    """Collects the parts of the SVG. ``colours``: the colour of each series, in all charts."""

    def __init__(self, colours: Mapping[str, str]) -> None:
        self.pieces: list[str] = []
        self._colours = colours

    def heading(self, box: Box, lines: Iterable[str]) -> None:
        """The part of Markdown that the dashboard uses: a title and a paragraph."""
        y = box.y + 20
        for line in "".join(lines).splitlines():
            size, weight = (20, 700) if line.startswith("# ") else (12, 400)
            plain = line.removeprefix("# ").replace("`", "")
            for part in textwrap.wrap(plain, int(box.width / (size * CHARACTER))):
                self.pieces.append(text(box.x + 2, y, part, size, font_weight=weight))
                y += size + 6

    def counter(self, box: Box, spec: Mapping[str, Any], answer: Answer) -> None:
        """One number."""
        inner = self._card(box, spec["frame"])
        [[value]] = answer.picked([spec["encodings"]["value"]])
        y = inner.y + inner.height / 2 + 11
        self.pieces.append(text(inner.x, y, shown(value), 30, fill=COLOURS[0], font_weight=600))

    def table(self, box: Box, spec: Mapping[str, Any], answer: Answer) -> None:
        """As many rows under headers as fit; numbers are aligned to the right."""
        inner, columns = self._card(box, spec["frame"]), spec["encodings"]["columns"]
        rows = answer.picked(columns)[: int((inner.height - 18) / 19)]
        cells = [[each["displayName"] for each in columns], *(map(shown, row) for row in rows)]
        table = [list(column) for column in zip(*cells, strict=True)]
        widths = [max(map(len, column)) + 3 for column in table]
        x, unit = inner.x, inner.width / sum(widths)
        for number, (column, count) in enumerate(zip(table, widths, strict=True)):
            right = bool(rows) and isinstance(rows[0][number], (int, float))
            at, anchor = (x + (count - 3) * unit, "end") if right else (x, "start")
            for line, cell in enumerate(column):
                y = inner.y + 12 + line * 19 + (3 if line else 0)
                label, fill = fitted(cell, (count - 1) * unit, 11), INK if line else FAINT
                self.pieces.append(text(at, y, label, 11, text_anchor=anchor, fill=fill))
            x += count * unit
        self.pieces.append(rule(inner.x, inner.x + inner.width, inner.y + 18))

    def line(self, box: Box, spec: Mapping[str, Any], answer: Answer) -> None:
        """A line for each series, over time."""
        rows = self._rows(spec, answer)
        plot = self._plot(box, spec["frame"], [row[2] for row in rows])
        first = min(minutes(row[0]) for row in rows)
        span = max(max(minutes(row[0]) for row in rows) - first, 1)
        top = self._scale(plot, max(row[1] for row in rows))
        lines: dict[str, str] = {}
        for moment, height, name in rows:
            x = plot.x + (minutes(moment) - first) / span * plot.width
            y = plot.y + plot.height * (1 - height / top)
            lines[name] = f"{lines.get(name, '')} {x:.1f},{y:.1f}"
        for name, points in lines.items():
            style = f'fill="none" stroke="{self._colours[name]}" stroke-width="2"'
            self.pieces.append(f'<polyline points="{points.strip()}" {style}/>')
        step = next((each for each in MINUTE_STEPS if span / each <= 8), 720)
        for tick in range(math.ceil(first / step), int((first + span) / step) + 1):
            label = datetime.fromtimestamp(tick * step * 60, timezone.utc).strftime("%H:%M")
            self._below(plot, plot.x + (tick * step - first) / span * plot.width, label)

    def bar(self, box: Box, spec: Mapping[str, Any], answer: Answer) -> None:
        """A stacked bar for each category."""
        rows = self._rows(spec, answer)
        plot = self._plot(box, spec["frame"], [row[2] for row in rows])
        whole = {row[0]: sum(each[1] for each in rows if each[0] == row[0]) for row in rows}
        top, room = self._scale(plot, max(whole.values())), plot.width / len(whole)
        tops = dict.fromkeys(whole, plot.y + plot.height)
        for category, value, name in rows:
            height = plot.height * value / top
            tops[category] -= height
            x = plot.x + (list(whole).index(category) + 0.18) * room
            bar = Box(x, tops[category], room * 0.64, height)
            self.pieces.append(block(bar, self._colours[name], 1))
        for index, category in enumerate(whole):
            label = fitted(str(category), room, 10)
            self._below(plot, plot.x + (index + 0.5) * room, label)

    def _card(self, box: Box, frame: Mapping[str, Any]) -> Box:
        """Draw the frame of a widget; return the space below its title and description."""
        x, y, width = box.x + PAD, box.y + 21, box.width - 2 * PAD
        self.pieces.append(block(box, "#ffffff", 6, LINE))
        self.pieces.append(text(x, y, fitted(frame["title"], width, 13), 13, font_weight=600))
        if frame.get("showDescription"):
            y += 16
            self.pieces.append(text(x, y, fitted(frame["description"], width, 11), fill=FAINT))
        return Box(x, y + 9, width, box.y + box.height - PAD - y - 9)

    def _rows(self, spec: Mapping[str, Any], answer: Answer) -> list[list[Any]]:
        return answer.picked(spec["encodings"][each] for each in ("x", "y", "color"))

    def _plot(self, box: Box, frame: Mapping[str, Any], names: Iterable[str]) -> Box:
        """Draw the frame and the legend of a chart; return the space between its axes."""
        inner = self._card(box, frame)
        x = inner.x
        for name in sorted(set(names)):
            self.pieces.append(block(Box(x, inner.y + 3, 9, 9), self._colours[name], 2))
            self.pieces.append(text(x + 13, inner.y + 11, name, fill=FAINT))
            x += 27 + len(name) * 11 * CHARACTER
        return Box(inner.x + 44, inner.y + 24, inner.width - 54, inner.height - 40)

    def _scale(self, plot: Box, highest: float) -> float:
        """Draw the vertical axis; return the number at its top."""
        ticks = steps(highest)
        for tick in ticks:
            y = plot.y + plot.height * (1 - tick / ticks[-1])
            label = text(plot.x - 6, y + 3, f"{tick:,.0f}", 10, fill=FAINT, text_anchor="end")
            self.pieces += [rule(plot.x, plot.x + plot.width, y), label]
        return ticks[-1]

    def _below(self, plot: Box, x: float, label: str) -> None:
        y = plot.y + plot.height + 15
        self.pieces.append(text(x, y, label, 10, fill=FAINT, text_anchor="middle"))


def place(position: Mapping[str, int]) -> Box:
    """The rectangle of a position in the grid."""
    column, row = (WIDTH - 2 * MARGIN + GAP) / COLUMNS, ROW + GAP
    x, y = MARGIN + position["x"] * column, MARGIN + position["y"] * row
    return Box(x, y, position["width"] * column - GAP, position["height"] * row - GAP)


def draw(layout: Sequence[Mapping[str, Any]], answers: Mapping[str, Answer]) -> str:
    """The widgets of a page, as SVG."""
    specs = {each["widget"]["name"]: each["widget"].get("spec", {}) for each in layout}
    coloured = {name: spec["encodings"].get("color") for name, spec in specs.items() if spec}
    names = {row[0] for each, one in coloured.items() if one for row in answers[each].picked([one])}
    picture = Picture({each: COLOURS[n % len(COLOURS)] for n, each in enumerate(sorted(names))})
    for each in layout:
        widget, box = each["widget"], place(each["position"])
        if "multilineTextboxSpec" in widget:
            picture.heading(box, widget["multilineTextboxSpec"]["lines"])
        else:
            spec = widget["spec"]
            getattr(picture, spec["widgetType"])(box, spec, answers[widget["name"]])
    ends = [box.y + box.height for box in (place(each["position"]) for each in layout)]
    whole = Box(0, 0, WIDTH, max(ends) + MARGIN)
    size = f'width="{WIDTH}" height="{whole.height:.0f}" viewBox="0 0 {WIDTH} {whole.height:.0f}"'
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">'
    return "\n".join([root, block(whole, "#f4f6f7"), *picture.pieces, "</svg>\n"])


if __name__ == "__main__":
    dashboard, answered, picture = map(Path, sys.argv[1:])
    answers = json.loads(answered.read_text("utf-8"))
    page = json.loads(dashboard.read_text("utf-8"))["pages"][0]
    drawn = draw(page["layout"], {name: Answer(**each) for name, each in answers.items()})
    picture.write_text(drawn, "utf-8")
