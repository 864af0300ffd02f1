"""The offsets table: one row per (pipeline, sequence, topic, partition), for people and SQL.

A projection of the entries in the target tables' logs, written right after each commit
under a ``txn`` of its own, so that nothing writes a row twice. Never read as the truth.

Columns: pipeline STRING, sequence BIGINT, topic STRING, partition INT, from_offset BIGINT,
until_offset BIGINT (exclusive), end_offset BIGINT (the log's, when the entry was planned; null
if not told), records BIGINT (= applied + quarantined), applied BIGINT, quarantined BIGINT,
table_name STRING, table_version BIGINT, commit STRING, committed_at TIMESTAMP,
topic_id STRING, cluster_id STRING.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rivermouth.protocol.commits import app_id
from rivermouth.warehouse.ports import Counted

SCHEMA = pa.schema(
    [
        ("pipeline", pa.string()),
        ("sequence", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("from_offset", pa.int64()),
        ("until_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("records", pa.int64()),
        ("applied", pa.int64()),
        ("quarantined", pa.int64()),
        ("table_name", pa.string()),
        ("table_version", pa.int64()),
        ("commit", pa.string()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("topic_id", pa.string()),
        ("cluster_id", pa.string()),
    ]
)


AGAIN = "Run again: the start brings the offsets table up to date"
REBUILD = "Delete its folder, then run: rivermouth offsets rebuild"


def app_of(pipeline: str) -> str:
    """The ``appId`` under which a pipeline's rows are written."""
    return f"{app_id(pipeline)}/offsets"


def rollback_app_of(pipeline: str) -> str:
    """The ``appId`` under which a start notes that entries were rolled back."""
    return f"{app_id(pipeline)}/halted"


def rows_of(entries: Sequence[Counted], table_name: str) -> pa.Table:
    """The rows of entries: one for each of their ranges, see ``SCHEMA``."""
    rows = [row for each in entries for row in _rows(each, table_name)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _rows(counted: Counted, table_name: str) -> Iterator[dict[str, object]]:
    entry = counted.recorded.entry
    for offset_range, counts in zip(entry.ranges, counted.rows, strict=True):
        yield {
            "pipeline": entry.pipeline,
            "sequence": entry.sequence,
            "topic": offset_range.topic,
            "partition": offset_range.partition,
            "from_offset": offset_range.from_offset,
            "until_offset": offset_range.until_offset,
            "end_offset": entry.ends.get(offset_range.topic_partition),
            "records": counts.applied + counts.quarantined,
            "applied": counts.applied,
            "quarantined": counts.quarantined,
            "table_name": table_name,
            "table_version": counted.recorded.version,
            "commit": entry.commit,
            "committed_at": counted.recorded.timestamp_ms * 1000,
            "topic_id": entry.topics.get(offset_range.topic),
            "cluster_id": entry.cluster,
        }
