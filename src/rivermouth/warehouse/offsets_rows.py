"""The offsets table: one row per (pipeline, sequence, topic, partition), for people and SQL.

A projection of the entries in the target tables' logs, written right after each commit
under a ``txn`` of its own, so that nothing writes a row twice. Never read as the truth.

Its columns are in ``SCHEMA``. ``until_offset`` is exclusive. ``end_offset`` is where the log ended
when the entry was planned; null if that is not known. ``records`` are
``applied + quarantined + skipped``.

A row may go once it is old and a newer old row of its partition is there: so the newest of each
partition stays, from which a position is recovered once log clean-up has taken the ledger. A row
with bad records stays: its commit id says which rows of the quarantine count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.protocol.commits import Recorded, app_id
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.spark.session import balanced
from rivermouth.storage.store import Store

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
        ("skipped", pa.int64()),
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


def rows_of(entries: Sequence[Recorded]) -> pa.Table:
    """The rows of entries: one for each of their ranges, see ``SCHEMA``. Each has its counts."""
    rows = [row for each in entries for row in _rows(each)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _rows(recorded: Recorded) -> Iterator[dict[str, object]]:
    entry = recorded.entry
    for offset_range, counts in zip(entry.ranges, entry.rows or (), strict=True):
        yield {
            "pipeline": entry.pipeline,
            "sequence": entry.sequence,
            "topic": offset_range.topic,
            "partition": offset_range.partition,
            "from_offset": offset_range.from_offset,
            "until_offset": offset_range.until_offset,
            "end_offset": entry.ends.get(offset_range.topic_partition),
            "records": counts.records,
            "applied": counts.applied,
            "quarantined": counts.quarantined,
            "skipped": counts.skipped,
            "table_name": entry.config.get("table"),
            "table_version": recorded.version,
            "commit": entry.commit,
            "committed_at": recorded.timestamp_ms * 1000,
            "topic_id": entry.topics.get(offset_range.topic),
            "cluster_id": entry.cluster,
        }


COLUMNS = [
    "pipeline",
    "sequence",
    "topic",
    "partition",
    "until_offset",
    "table_version",
    "commit",
    "topic_id",
    "cluster_id",
]


def read_projected(store: Store, files: Iterable[str], pipeline: str) -> Recorded | None:
    """The newest entry of a pipeline in the table's data files; None where there is none.

    Reads all rows of the pipeline: for the one case in which the log has no entry left.
    """
    rows = [
        row
        for file in files
        for row in pq.read_table(store.opened(file), columns=COLUMNS).to_pylist()
        if row["pipeline"] == pipeline
    ]
    return newest_of(rows)


def newest_of(unordered: Iterable[Mapping[str, Any]]) -> Recorded | None:
    """The newest entry of a pipeline from all its rows (``COLUMNS``); None where there is none.

    See ``ports.OffsetsTable.newest``.
    """
    rows = sorted(unordered, key=lambda row: int(row["sequence"]))  # what comes later stands
    if not rows:
        return None
    places = {TopicPartition(row["topic"], row["partition"]): row["until_offset"] for row in rows}
    newest = rows[-1]
    entry = Entry(
        pipeline=newest["pipeline"],
        sequence=newest["sequence"],
        commit=newest["commit"],
        cluster=newest["cluster_id"],
        table="",
        topics={row["topic"]: row["topic_id"] for row in rows},
        ranges=(),
        position=Position(places),
    )
    return Recorded(newest["table_version"], 0, entry)


OldRows = tuple[str, str, int, int, int]
"""Pipeline, topic and partition of old rows without bad records; the newest of their sequences,
and how many they are.
"""


def expired(old: Iterable[OldRows]) -> list[str]:
    """The conditions, in SQL, of the old rows that may go: one for each pipeline.

    A condition names rows below the pipeline's newest old one, but for idle partitions. Entries
    come into the table in order: so no row comes later that a condition meets. There is none unless
    as many rows may go as have to stay: else files are written anew for little.
    """
    newest: dict[str, dict[tuple[str, int], int]] = {}
    number = 0
    for pipeline, topic, partition, sequence, rows in old:
        places = newest.setdefault(pipeline, {})
        places[topic, partition] = max(sequence, places.get((topic, partition), 0))
        number += rows
    if number < 2 * sum(map(len, newest.values())):
        return []
    return [_below(pipeline, places) for pipeline, places in sorted(newest.items())]


def _below(pipeline: str, newest: Mapping[tuple[str, int], int]) -> str:
    """The rows of a pipeline that are older than the newest one of their partition."""
    last = max(newest.values())
    idle: dict[tuple[str, int], list[int]] = {}
    for (topic, partition), sequence in newest.items():
        if sequence < last:
            idle.setdefault((topic, sequence), []).append(partition)
    below = f"pipeline = '{pipeline}' AND sequence < {last} AND quarantined = 0"
    stay = [_of(*each, partitions) for each, partitions in sorted(idle.items())]
    return f"{below} AND NOT {balanced('({} OR {})'.format, stay)}" if stay else below


def _of(topic: str, sequence: int, partitions: Sequence[int]) -> str:
    listed = ", ".join(str(each) for each in sorted(partitions))
    return f"(sequence = {sequence} AND topic = '{topic}' AND partition IN ({listed}))"
