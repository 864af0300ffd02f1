"""How new the newest record of a commit is: from the statistics of the files that it added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any


def newest_record_ms(statistics: Iterable[Mapping[str, Any]]) -> int | None:
    """The greatest ``_kafka.timestamp`` that Delta noted of these files, in ms since 1970."""
    greatest = [each.get("maxValues", {}).get("_kafka", {}) for each in statistics]
    texts = [each["timestamp"] for each in greatest if each.get("timestamp")]
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    return int(max(times).timestamp() * 1000) if times else None
