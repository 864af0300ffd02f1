"""The page in a real Chromium, without a network: what it shows, says and asks for."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.report.parts import axe, chromium, playwright

WIDE, PHONE = (1280, 900), (390, 844)
_OPTIONS = ["--no-sandbox", "--headless=shell", "--disable-gpu", "--disable-software-rasterizer"]


@dataclass
class Looked:
    """A page that is open. ``errors`` are what the browser complained of, ``asked`` the addresses
    that the page asked for, its own apart.
    """

    page: Any
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def draw_all(self) -> None:
        """Let each chart be drawn, as one who scrolls down does."""
        for number in range(self.page.locator("figure").count()):
            self.page.locator("figure").nth(number).scroll_into_view_if_needed()
            self.page.locator("figure").nth(number).and_(
                self.page.locator("[data-drawn]")
            ).wait_for(timeout=5_000)
        self.page.evaluate("scrollTo(0, 0)")

    def violations(self) -> list[str]:
        """What axe finds wrong, with the first element of each."""
        script = axe().read_text(encoding="utf-8")
        self.page.evaluate(script)
        found = self.page.evaluate("axe.run()")
        return [f"{e['id']}: {e['nodes'][0]['html'][:200]}" for e in found["violations"]]


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, until the block ends. Raises SetupError."""
    folder = chromium()
    sys.path.insert(0, str(playwright()))
    try:
        sync = importlib.import_module("playwright.sync_api").sync_playwright
    finally:
        sys.path.pop(0)
    environ = {**os.environ, "LD_LIBRARY_PATH": str(folder / "lib")}
    with sync() as driver:
        program = driver.chromium.launch(
            executable_path=str(folder / "chromium"), args=_OPTIONS, env=environ
        )
        try:
            yield program
        finally:
            program.close()


@contextmanager
def looking(
    program: Any,
    address: str,
    size: tuple[int, int] = WIDE,
    scheme: str = "light",
    scale: float = 1.0,
) -> Iterator[Looked]:
    """The page at an address, in a window of this size."""
    view = {"width": size[0], "height": size[1]}
    context = program.new_context(
        viewport=view, color_scheme=scheme, device_scale_factor=scale, locale="en-US"
    )
    try:
        found = Looked(context.new_page())
        found.page.on("console", lambda said: found.errors.append(said.text))
        found.page.on("pageerror", lambda fault: found.errors.append(str(fault)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(address)
        found.asked.remove(address)
        yield found
    finally:
        context.close()
