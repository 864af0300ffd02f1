"""What the offsets table has kept of a ledger that log clean-up has taken from the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from rivermouth.protocol.entry import Entry
from rivermouth.protocol.offsets import Position, TopicPartition

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


@dataclass(frozen=True)
class Kept:
    """A pipeline's newest entry as far as its rows tell: enough to go on from."""

    sequence: int
    version: int
    commit: str
    cluster: str
    topics: Mapping[str, str]
    position: Position

    def as_entry(self, pipeline: str, table: str, config: Mapping[str, Any]) -> Entry:
        """The entry, of the table with that id, with the settings that apply now."""
        return Entry(
            pipeline=pipeline,
            sequence=self.sequence,
            commit=self.commit,
            cluster=self.cluster,
            table=table,
            topics=self.topics,
            ranges=(),
            position=self.position,
            config=config,
        )


def read_kept(files: Iterable[str], pipeline: str) -> Kept | None:
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


def newest_of(unordered: Iterable[Mapping[str, Any]]) -> Kept | None:
    """The newest entry of a pipeline from all its rows (``COLUMNS``); None where there is none."""
    rows = sorted(unordered, key=lambda row: int(row["sequence"]))  # what comes later stands
    if not rows:
        return None
    places = {TopicPartition(row["topic"], row["partition"]): row["until_offset"] for row in rows}
    return Kept(
        sequence=rows[-1]["sequence"],
        version=rows[-1]["table_version"],
        commit=rows[-1]["commit"],
        cluster=rows[-1]["cluster_id"],
        topics={row["topic"]: row["topic_id"] for row in rows},
        position=Position(places),
    )
