"""The offsets table: one row per (pipeline, sequence, topic, partition), for people and SQL.

A projection of the entries in the target tables' logs, written right after each commit
under a ``txn`` of its own, so that nothing writes a row twice. Never read as the truth.

Columns: pipeline STRING, sequence BIGINT, topic STRING, partition INT, from_offset BIGINT,
until_offset BIGINT (exclusive), end_offset BIGINT (the log's, when the entry was planned; null
if not told), records BIGINT (= applied + quarantined), applied BIGINT, quarantined BIGINT,
table_name STRING, table_version BIGINT, commit STRING, committed_at TIMESTAMP,
topic_id STRING, cluster_id STRING.

A row may go once it is old and a newer old row of its partition is there: so the newest of each
partition stays, from which a position is recovered once log clean-up has taken the ledger. A row
with bad records stays: its commit id says which rows of the quarantine count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.protocol.commits import app_id
from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.protocol.snapshot import ProjectedEntry
from rivermouth.spark.session import balanced
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


def read_projected(files: Iterable[str], pipeline: str) -> ProjectedEntry | None:
    """The newest entry of a pipeline in the table's data files; None where there is none.

    Reads all rows of the pipeline: for the one case in which the log has no entry left.
    """
    rows = [
        row
        for file in files
        for row in pq.read_table(unquote(file), columns=COLUMNS).to_pylist()
        if row["pipeline"] == pipeline
    ]
    return newest_of(rows)


def newest_of(unordered: Iterable[Mapping[str, Any]]) -> ProjectedEntry | None:
    """The newest entry of a pipeline from all its rows (``COLUMNS``); None where there is none."""
    rows = sorted(unordered, key=lambda row: int(row["sequence"]))  # what comes later stands
    if not rows:
        return None
    places = {TopicPartition(row["topic"], row["partition"]): row["until_offset"] for row in rows}
    return ProjectedEntry(
        sequence=rows[-1]["sequence"],
        version=rows[-1]["table_version"],
        commit=rows[-1]["commit"],
        cluster=rows[-1]["cluster_id"],
        topics={row["topic"]: row["topic_id"] for row in rows},
        position=Position(places),
    )


OldRows = tuple[str, str, int, int, int]
"""Pipeline, topic and partition of old rows without bad records; the newest of their sequences,
and how many they are.
"""


@dataclass
class Expired:
    """Collects old rows; ``predicates`` are the conditions, in SQL, of those that may go."""

    _newest: dict[tuple[str, str, int], int] = field(default_factory=dict)
    _rows: int = 0

    def add(self, rows: Iterable[OldRows]) -> None:
        """Take more of the old rows, in any order."""
        for pipeline, topic, partition, sequence, number in rows:
            where = (pipeline, topic, partition)
            self._newest[where] = max(sequence, self._newest.get(where, 0))
            self._rows += number

    @property
    def worth_it(self) -> bool:
        """Whether as many rows may go as have to stay: else files are written anew for little."""
        return self._rows >= 2 * len(self._newest) > 0

    def predicates(self) -> list[str]:
        """One condition for each pipeline: rows below its newest old one, but for idle partitions.

        Entries come into the table in order: so no row comes later that the condition meets.
        """
        return [self._predicate(each) for each in sorted({where[0] for where in self._newest})]

    def _predicate(self, pipeline: str) -> str:
        mine = {where[1:]: n for where, n in self._newest.items() if where[0] == pipeline}
        newest = max(mine.values())
        idle: dict[tuple[str, int], list[int]] = {}
        for (topic, partition), sequence in mine.items():
            if sequence < newest:
                idle.setdefault((topic, sequence), []).append(partition)
        below = f"pipeline = '{pipeline}' AND sequence < {newest} AND quarantined = 0"
        kept = [_of(*each, partitions) for each, partitions in sorted(idle.items())]
        return f"{below} AND NOT {balanced(_either, kept)}" if kept else below


def _either(one: str, other: str) -> str:
    return f"({one} OR {other})"


def _of(topic: str, sequence: int, partitions: Sequence[int]) -> str:
    listed = ", ".join(str(each) for each in sorted(partitions))
    return f"(sequence = {sequence} AND topic = '{topic}' AND partition IN ({listed}))"
