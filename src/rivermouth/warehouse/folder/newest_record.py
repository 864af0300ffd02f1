"""How old the newest record of a commit is: from the statistics of the files that it added."""

from __future__ import annotations

from datetime import datetime

from rivermouth.warehouse.folder.log import FolderLog


def newest_record_ms(log: FolderLog, version: int) -> int | None:
    """The greatest ``_kafka.timestamp`` among the files that a commit added."""
    statistics = log.added_statistics(version)
    greatest = [each.get("maxValues", {}).get("_kafka", {}) for each in statistics]
    texts = [each["timestamp"] for each in greatest if each.get("timestamp")]
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    return int(max(times).timestamp() * 1000) if times else None
