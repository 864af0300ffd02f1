"""The curves of a long run as a picture, one below the other: ``python bench/curves.py < LINE``.

What is read is the last line of ``longrun.py``; what is written is SVG.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

WIDTH, HEIGHT, GAP, LEFT, RIGHT, TOP = 900, 96, 40, 64, 884, 34
LINE, GRID = "#1f6f8b", "#dfe5e8"
CURVES = {
    "cpu_ms": "A batch of 10,000 random keys, median CPU milliseconds",
    "files": "Files of the table",
    "vectors": "Files with deletion vectors",
    "dead": "Part of the rows that is deleted",
    "scan_cpu_s": "A scan of all rows and columns by delta-rs, CPU seconds",
}
Curve = Sequence[Mapping[str, float]]


def picture(curve: Curve) -> str:
    """The picture. Each point has ``batch`` and the values that ``CURVES`` names."""
    whole = TOP + len(CURVES) * (HEIGHT + GAP) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{whole}"'
        f' viewBox="0 0 {WIDTH} {whole}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{whole}" fill="#ffffff"/>',
    ]
    for number, (name, title) in enumerate(CURVES.items()):
        lines += _panel(curve, name, title, TOP + number * (HEIGHT + GAP))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(curve: Curve, name: str, title: str, top: int) -> Iterator[str]:
    most, last = max(each[name] for each in curve) * 1.15 or 1.0, curve[-1]["batch"]
    bottom = top + HEIGHT
    yield f'<text x="{LEFT}" y="{top - 8}" font-size="13">{title}</text>'
    for part in (0, 0.5, 1):
        y, value = bottom - HEIGHT * part, most * part
        shown = f"{value:.2f}" if most < 2 else f"{value:,.0f}"
        yield f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>'
    for part in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + (RIGHT - LEFT) * part
        text = f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">'
        yield f"{text}{last * part:,.0f}</text>"
    across, up = (RIGHT - LEFT) / last, HEIGHT / most
    points = [f"{LEFT + across * e['batch']:.1f},{bottom - up * e[name]:.1f}" for e in curve]
    yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{LINE}" stroke-width="2"/>'


if __name__ == "__main__":
    sys.stdout.write(picture(json.loads(sys.stdin.read().strip().split("\n")[-1])["curve"]))
