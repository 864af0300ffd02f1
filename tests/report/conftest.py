"""Chromium, once for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rivermouth.errors import SetupError
from tests.report.browser import browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """It; the test is skipped where it cannot be had."""
    try:
        with browser() as program:
            yield program
    except SetupError as fault:
        pytest.skip(str(fault))
