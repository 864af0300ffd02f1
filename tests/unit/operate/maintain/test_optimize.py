"""How long a table keeps old files, by its own setting."""

from __future__ import annotations

import pytest

from rivermouth.operate.optimize import hours

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        (None, 168),
        ("interval 7 days", 168),
        ("interval 1 week", 168),
        ("INTERVAL 48 HOURS", 48),
        ("interval 1 day 12 hours", 36),
        ("interval 90 minutes", 1.5),
        ("interval 0 hours", 0),
        ("interval 900000 milliseconds", 0.25),
        ("30 days", 720),
        ("soon", 0),
        ("", 0),
        ("interval", 0),
        ("interval 2 months", 0),
        ("interval 2 months 7 days", 0),
        ("interval -7 days", 0),
    ],
)
def test_a_retention_in_hours_and_0_for_what_nobody_understands(
    retention: str | None, expected: float
) -> None:
    assert hours(retention) == expected
