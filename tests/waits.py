"""How long the product waits in tests: where users wait for a second, a test waits for a moment."""

from __future__ import annotations

from rivermouth.run import feeding
from rivermouth.verification import sharing
from rivermouth.verification.proofs import offsets_table
from rivermouth.warehouse.lake import warehouse

WAITS = (
    (warehouse, "PATIENCE_S", 1.0),  # for a predecessor that ends
    (offsets_table, "WAIT_S", 0.1),  # for rows that a run may be writing
    (sharing, "START_AFTER_S", 60.0),  # what a test verifies is not worth another process
    (feeding, "ASK_NAMES_S", 0.5),
)
"""The module, its constant, and the seconds in tests."""


def shorten() -> None:
    """Let this process wait no longer than tests do."""
    for module, name, seconds in WAITS:
        assert hasattr(module, name), f"{module.__name__} has no {name}"
        setattr(module, name, seconds)
