"""The page in a real Chromium, over a lake with an outage, a loss and a peak of bad records.

``PICTURES=1`` keeps what it looks like in ``docs/pictures``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rivermouth.report import serving
from rivermouth.report.page import page
from rivermouth.report.serving import PageServer
from tests.processes import ROOT
from tests.report.browser import PHONE, WIDE, Looked, looking
from tests.report.made import HOSTILE, MadeLake, hostile

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PICTURES = ROOT / "docs" / "pictures"
CHARTS = 5 + 5 + 6
"""Records, bytes, lag, time between, heat map; of one pipeline also codes."""
INK = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  return seen.size;
}"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> MadeLake:
    return MadeLake(tmp_path_factory.mktemp("report"), every=5)


@pytest.fixture(scope="module")
def address(lake: MadeLake) -> str:
    file = lake.folder / "report.html"
    file.write_text(page(lake.report(samples=3)), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(params=["light", "dark", "phone"])
def looked(request: pytest.FixtureRequest, chromium: Any, address: str) -> Iterator[Looked]:
    size = PHONE if request.param == "phone" else WIDE
    scheme = "light" if request.param == "light" else "dark"
    with looking(chromium, address, size, scheme) as found:
        found.draw_all()
        yield found


def test_every_chart_is_drawn_without_an_error_or_a_request(looked: Looked) -> None:
    assert looked.page.locator("figure").count() == CHARTS
    canvases = looked.page.locator("figure canvas")
    assert canvases.count() == CHARTS - 3
    for number in range(canvases.count()):
        assert canvases.nth(number).evaluate(INK) > 3
    maps = looked.page.locator("svg.heat")
    assert [maps.nth(n).locator("rect").count() > 20 for n in range(maps.count())] == [True] * 3
    assert looked.page.locator(".spark rect").count() > 100
    assert (looked.errors, looked.asked) == ([], [])
    wide = looked.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide == 0


def test_axe_finds_nothing_wrong_with_all_tables_open(looked: Looked) -> None:
    assert looked.violations() == []
    for number in range(CHARTS):
        looked.page.locator("figure summary").nth(number).click()
    looked.page.locator("figure table tbody tr").last.wait_for()
    assert looked.violations() == []
    assert looked.errors == []


def cells(looked: Looked, chart: str, pipeline: int, column: int) -> list[int]:
    """The figures of a column in the table of a chart."""
    figure = f'figure[data-chart="{chart}"][data-pipeline="{pipeline}"]'
    if not looked.page.locator(f"{figure} details[open]").count():
        looked.page.locator(f"{figure} summary").click()
    rows = looked.page.locator(f"{figure} details tbody tr")
    rows.first.wait_for()
    texts = rows.evaluate_all(f"all => all.map(row => row.children[{column}].textContent)")
    return [int(each.replace(",", "")) for each in texts]


def test_the_figures_that_somebody_reads_are_those_of_the_ledger(
    chromium: Any, address: str, lake: MadeLake
) -> None:
    with looking(chromium, address) as looked:
        looked.draw_all()
        for number, made in enumerate(lake.made.values()):
            rows = [each for entry in made.entries for each in entry.rows or ()]
            offsets = sum(each.span for entry in made.entries for each in entry.ranges)
            records, bad = sum(e.records for e in rows), sum(e.quarantined for e in rows)
            assert sum(cells(looked, "records", number, 1)) == records
            assert sum(cells(looked, "records", number, 2)) == bad
            assert sum(cells(looked, "heat", number, 1)) == offsets
            line = looked.page.locator("main > .wide tbody tr").nth(number)
            assert f"{records:,}" in line.inner_text()
        peak = [sum(cells(looked, "codes", 2, column)) for column in (1, 2, 3)]
        assert sum(peak) == bad
        assert "2,620" in looked.page.locator("main > .wide tbody tr").first.inner_text()


def test_whatever_others_wrote_is_shown_as_text(chromium: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(hostile(tmp_path)), encoding="utf-8")
    with looking(chromium, file.as_uri()) as looked:
        looked.draw_all()
        for number in range(looked.page.locator("figure").count()):
            looked.page.locator("figure summary").nth(number).click()
        assert HOSTILE in looked.page.locator("h1").inner_text()
        assert HOSTILE in looked.page.locator("section").inner_text()
        assert looked.page.locator("img").count() == 0
        assert looked.violations() == []
        assert (looked.errors, looked.asked) == ([], [])


def test_a_keyboard_reaches_all_and_reads_figures_of_a_chart(chromium: Any, address: str) -> None:
    with looking(chromium, address) as looked:
        looked.draw_all()
        looked.page.keyboard.press("Tab")
        assert looked.page.evaluate("document.activeElement.className") == "skip"
        chart = looked.page.locator('figure[data-chart="records"] .plot').first
        chart.focus()
        looked.page.keyboard.press("ArrowRight")
        value = chart.locator(".u-value").nth(1)
        looked.page.wait_for_timeout(100)
        assert int(value.inner_text().replace(",", "")) > 0
        levels = looked.page.locator("h1, h2, h3").evaluate_all(
            "all => all.map(e => +e.tagName[1])"
        )
        assert levels[0] == 1
        assert all(later <= before + 1 for before, later in pairwise(levels))


def test_a_page_that_is_served_becomes_the_next_one(
    chromium: Any, lake: MadeLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "REFRESH_S", 0)
    made = 0

    def make() -> str:
        nonlocal made
        made += 1
        return page(lake.report(commits=20 + made), refresh_s=1)

    with PageServer(0, make) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with looking(chromium, server.url) as looked:
                looked.draw_all()
                looked.page.locator("figure summary").first.click()
                looked.page.get_by_text("The newest 22 commits").first.wait_for()
                looked.page.locator("figure[data-drawn] details[open] tbody tr").first.wait_for()
                assert looked.page.locator("figure details[open]").count() == 1
                assert looked.errors == []
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif("PICTURES" not in os.environ, reason="PICTURES=1 takes them")
@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("report-light", (1200, 1410), "light"),
        ("report-dark", (1200, 1410), "dark"),
        ("report-phone", (390, 1300), "dark"),
    ],
)
def test_pictures_are_taken(
    chromium: Any, tmp_path: Path, name: str, size: tuple[int, int], scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(MadeLake(tmp_path, every=5).report()), encoding="utf-8")
    with looking(chromium, file.as_uri(), size, scheme, scale=0.75) as looked:
        looked.draw_all()
        looked.page.screenshot(path=PICTURES / f"{name}.png")
