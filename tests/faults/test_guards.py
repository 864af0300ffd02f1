"""Each guard switched off in the product: the state machine finds a violation."""

from __future__ import annotations

import pytest
from hypothesis.errors import HypothesisException

from tests.faults.any_order import run
from tests.faults.guards import GUARDS

pytestmark = pytest.mark.unit

ROUNDS = 400
"""Histories of up to 40 steps within which a missing guard shows."""


@pytest.mark.takes_long(
    "an entry for every batch",
    "leader epochs compared",
    "leader epochs of what was restored",
    "prior offset compared before the commit",
)
@pytest.mark.parametrize("guard", GUARDS)
def test_without_this_guard_a_violation_is_found(
    guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    GUARDS[guard](monkeypatch)
    assert found(), f"{ROUNDS} histories went well without it"


def found() -> bool:
    """Whether histories go wrong; whatever a broken product raises shows it."""
    try:
        run(ROUNDS, number=1)
    except Exception as violation:
        return not isinstance(violation, HypothesisException)
    return False
