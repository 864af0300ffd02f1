"""The end of a table's log: enough for the newest entry, however long the log is."""

from __future__ import annotations

from datetime import datetime

from rivermouth.protocol.commits import CommitRecord, entry_of
from rivermouth.warehouse.folder.log import FolderLog

LOOK_BACK = 1000
"""How many commits are looked through for the newest entry of a pipeline."""


def read_tail(log: FolderLog, pipeline: str) -> list[CommitRecord]:
    """The commits from the newest entry on, in order; else the newest ``LOOK_BACK``."""
    tail: list[CommitRecord] = []
    for record in log.commits_backwards(LOOK_BACK):
        tail.append(record)
        if entry_of(record, pipeline) is not None:
            break
    return tail[::-1]


def newest_record_ms(log: FolderLog, version: int) -> int | None:
    """The greatest ``_kafka.timestamp`` among the files that a commit added."""
    statistics = log.added_statistics(version)
    greatest = [each.get("maxValues", {}).get("_kafka", {}) for each in statistics]
    texts = [each["timestamp"] for each in greatest if each.get("timestamp")]
    times = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in texts]
    return int(max(times).timestamp() * 1000) if times else None
