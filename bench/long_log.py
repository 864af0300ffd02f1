"""A long log of a table, whose first and last commits are real and whose others are written here.

The commits between bring no files, as in a table that maintenance keeps compact. Each carries the
entry of a batch that took one record of every partition, and its ``txn``. A checkpoint stands at
their end, as Delta would write it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from rivermouth.protocol.commits import Recorded, app_id, entry_of
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.warehouse.delta.log import DeltaLog


def newest_entry(table: Path, pipeline: str) -> Recorded:
    """The newest entry in the log of a table."""
    found = (
        (each, entry_of(each, pipeline)) for each in DeltaLog.of_folder(table).commits_backwards()
    )
    return next(Recorded(each.version, each.timestamp_ms, entry) for each, entry in found if entry)


def lengthen(table: Path, pipeline: str, commits: int) -> None:
    """Write so many commits after those that are there, and a checkpoint."""
    newest = newest_entry(table, pipeline)
    entry, log = newest.entry, table / "_delta_log"
    for number in range(1, commits + 1):
        version = newest.version + number
        entry = _next(entry, version - 1)
        actions = _actions(entry, newest.timestamp_ms + number)
        text = "".join(json.dumps(each) + "\n" for each in actions)
        (log / f"{version:020d}.json").write_text(text, encoding="utf-8")
    DeltaTable(str(table)).create_checkpoint()


def _next(entry: Entry, base: int) -> Entry:
    """The entry of the next batch: one record of each partition."""
    offsets = entry.position.offsets
    ranges = tuple(OffsetRange(each, at, at + 1) for each, at in offsets.items())
    return replace(
        entry,
        sequence=entry.sequence + 1,
        commit=str(uuid.uuid4()),
        base=base,
        ranges=ranges,
        position=Position({each: at + 1 for each, at in offsets.items()}),
        rows=(RowCounts(1, 0),) * len(ranges),
    )


def _actions(entry: Entry, timestamp_ms: int) -> Sequence[dict[str, object]]:
    info = {
        "timestamp": timestamp_ms,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": entry.base,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "0", "numOutputRows": "0", "numOutputBytes": "0"},
        "userMetadata": to_json(entry),
        "engineInfo": "bench/long_log.py",
        "txnId": str(uuid.uuid4()),
    }
    txn = {"appId": app_id(entry.pipeline), "version": entry.sequence, "lastUpdated": timestamp_ms}
    return ({"commitInfo": info}, {"txn": txn})
