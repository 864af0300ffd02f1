"""Functions that pipelines of the tests send to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rivermouth import Batch


def note(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Check what each call gets."""
    assert batch.pipeline == "p"
    assert partition_id in (0, 1)
    for each in rows:
        place = each["_kafka"]
        found = batch.range_of(place["topic"], place["partition"])
        assert found is not None
        assert found.from_offset <= place["offset"] < found.until_offset
        assert each["bidder"] == 7


def fail(rows: Iterator[dict[str, Any]], batch: Batch, partition_id: int) -> None:
    """Fail at the first row."""
    for each in rows:
        raise RuntimeError(f"no room for {each['auction']}")
