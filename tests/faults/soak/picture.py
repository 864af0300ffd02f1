"""The curve of memory as a picture: Python and JVM stacked, events as lines with their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.faults.soak.memory import Sample
from tests.faults.soak.schedule import Event, Happening

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 340, 64, 884, 56, 292
COLOURS = {
    Happening.RESTART_BROKER: "#b07d2b",
    Happening.KILL: "#b0413e",
    Happening.ADD_PARTITION: "#3e7cb0",
    Happening.RESTORE: "#6b4fa0",
}


def picture(samples: Sequence[Sample], events: Sequence[Event], whole_s: float) -> str:
    """The picture, as SVG."""
    most = max((each.mb for each in samples), default=1.0) * 1.1
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">Resident memory of the driver, MB</text>',
        *_axes(most, whole_s),
        *_legend(),
        *_events(events, whole_s),
        _area(samples, whole_s, most, [each.mb for each in samples], "#9db8c4"),
        _area(samples, whole_s, most, [each.python_mb for each in samples], "#1f6f8b"),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(at_s: float, whole_s: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(at_s / whole_s, 1.0)


def _y(mb: float, most: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * mb / most


def _axes(most: float, whole_s: float) -> Iterator[str]:
    for number in range(5):
        mb = most * number / 4
        y = _y(mb, most)
        yield f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dfe5e8"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{mb:,.0f}</text>'
    for number in range(7):
        x = _x(whole_s * number / 6, whole_s)
        minutes = f"{whole_s * number / 360:.0f} min"
        yield f'<text x="{x:.1f}" y="{BOTTOM + 16}" text-anchor="middle">{minutes}</text>'


def _legend() -> Iterator[str]:
    kinds = {"JVM": "#9db8c4", "Python": "#1f6f8b"}
    names = {**kinds, **{each.value: colour for each, colour in COLOURS.items()}}
    for number, (name, colour) in enumerate(names.items()):
        x = LEFT + number * 136
        yield f'<rect x="{x}" y="{HEIGHT - 20}" width="9" height="9" fill="{colour}"/>'
        yield f'<text x="{x + 14}" y="{HEIGHT - 12}">{name}</text>'


def _events(events: Sequence[Event], whole_s: float) -> Iterator[str]:
    for each in events:
        x = _x(each.at_s, whole_s)
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 16}" y2="{BOTTOM}"'
            f' stroke="{COLOURS[each.what]}" stroke-dasharray="3 2"/>'
        )


def _area(
    samples: Sequence[Sample], whole_s: float, most: float, mb: Sequence[float], colour: str
) -> str:
    points = [
        f"{_x(each.at_s, whole_s):.1f},{_y(value, most):.1f}"
        for each, value in zip(samples, mb, strict=True)
    ]
    ends = f"{RIGHT},{BOTTOM} {LEFT},{BOTTOM}"
    return f'<polygon points="{" ".join(points)} {ends}" fill="{colour}" fill-opacity="0.8"/>'
