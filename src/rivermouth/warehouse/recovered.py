"""A pipeline's newest entry, recovered from its rows in the offsets table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from rivermouth.protocol.offsets import Position, TopicPartition
from rivermouth.protocol.snapshot import ProjectedEntry

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
