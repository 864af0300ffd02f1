"""What is spilled to disk comes back whole and in order, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.verify.proofs.spill import Spill

pytestmark = pytest.mark.unit


def test_bytes_come_back_in_the_order_they_came(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "s", buffered_bytes=4)
    for number in range(6):
        spill.add(("a", number % 2), b"%d" % number)
    assert spill.take(("a", 0)) == b"024"
    assert spill.take(("a", 0)) == b""
    assert spill.take(("a", 1)) == b"135"


def test_values_come_back_in_the_order_they_came(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "s", buffered_bytes=10)
    spill.add_items("x", [1, ("two", b"\n")])
    spill.add_items("y", [0])
    spill.add_items("x", [None])
    assert list(spill.take_items("x")) == [1, ("two", b"\n"), None]
    assert list(spill.take_items("x")) == []
    assert list(spill.take_items("nothing")) == []
