"""Rows on disk come back by window, each once, with values where they are sampled."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.verify.proofs.rows_by_offset import RowsByOffset
from tests.unit.verify.doubles import (
    ZERO,
    MemoryRows,
    MemorySource,
    configured,
    entry,
    found,
    row,
    span,
    subject,
)

pytestmark = pytest.mark.unit


def test_rows_are_found_by_partition_and_window(tmp_path: Path) -> None:
    other = ("t", 1)
    asked = subject(configured(tmp_path), MemorySource(), entry(1, span(10, 30), span(0, 5, other)))
    rows = RowsByOffset(asked, ["id", "n"], tmp_path / "rows", window=10, stride=2)
    offsets = [12, 25, 10, 24, 12, 19]
    rows.read(MemoryRows([*(row(each, 1, each) for each in offsets), row(7, 1, 3, other)]))
    assert sorted(rows.offsets(ZERO, 0).tolist()) == [10, 12, 12, 19]
    assert sorted(rows.offsets(ZERO, 1).tolist()) == [24, 25]
    assert rows.offsets(ZERO, 1).tolist() == []
    assert rows.offsets(other, 0).tolist() == [3]
    assert rows.samples(ZERO, 0) == {10: [(10, 1, 5000)], 12: [(12, 1, 5000)] * 2}
    assert rows.samples(ZERO, 1) == {24: [(24, 1, 5000)]}
    assert rows.samples(other, 0) == {}
    assert found(asked) == {}
