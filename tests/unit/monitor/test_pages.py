"""The page on figures, the alert rules and the dashboard name the figures that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rivermouth.monitor.metrics import FIGURES, Kind
from tests.pages import page

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parents[3] / "monitoring"
_ENDS = {
    Kind.COUNTER: ("_total",),
    Kind.GAUGE: ("",),
    Kind.HISTOGRAM: ("_bucket", "_count", "_sum"),
}
NAMES = {f"rivermouth_{each.name}{end}" for each in FIGURES for end in _ENDS[each.kind]}


def test_the_page_lists_all_figures() -> None:
    table = page("metrics").partition("<!-- figures -->")[2].partition("<!-- end -->")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    ends = {Kind.COUNTER: "_total", Kind.GAUGE: "", Kind.HISTOGRAM: ""}
    assert rows == [
        f"| `rivermouth_{each.name}{ends[each.kind]}` | {each.kind.value} | "
        f"{', '.join(f'`{label}`' for label in each.labels)} | {each.what} |"
        for each in FIGURES
    ]


@pytest.mark.parametrize("file", ["prometheus-rules.yml", "grafana-dashboard.json"])
def test_rules_and_dashboard_name_figures_that_there_are(file: str) -> None:
    text = (FOLDER / file).read_text(encoding="utf-8")
    named = {*re.findall(r"\brivermouth_[a-z_]+", text)}
    assert named
    assert named - NAMES == set()


def test_the_dashboard_has_a_panel_for_each_kind_of_figure() -> None:
    board = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))
    assert len(board["panels"]) == 7
    ids = [each["id"] for each in board["panels"]]
    assert ids == [*range(1, 8)]
