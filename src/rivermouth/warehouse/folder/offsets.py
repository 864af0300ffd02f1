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

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from rivermouth.errors import CommitFailed
from rivermouth.protocol.entry import app_id
from rivermouth.protocol.history import Recorded
from rivermouth.warehouse.recovered import Kept, read_kept

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


class OffsetsTable:
    """The offsets table of a warehouse, at ``path``. Shared by all pipelines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._table: DeltaTable | None = None

    def sequence(self, pipeline: str) -> int:
        """The newest sequence projected for the pipeline; 0 where there is none."""
        table = self._refreshed()
        return (table.transaction_version(app_of(pipeline)) or 0) if table else 0

    def newest(self, pipeline: str) -> Kept | None:
        """What the table knows of the pipeline's newest entry; None where it knows none."""
        table = self._refreshed()
        try:
            return read_kept(table.file_uris(), pipeline) if table else None
        except (DeltaError, OSError, pa.ArrowException) as fault:
            raise self._failed("cannot be read", str(fault), REBUILD) from fault

    def halted_at(self, pipeline: str) -> int:
        """The version of the target from which on a start found commits undone; 0: never."""
        table = self._refreshed()
        return (table.transaction_version(_halted(pipeline)) or 0) if table else 0

    def note_halt(self, pipeline: str, version: int) -> None:
        """Note that, for longer than the log tells of it. Raises CommitFailed."""
        if self.halted_at(pipeline) >= version:
            return
        noted = CommitProperties(app_transactions=[Transaction(_halted(pipeline), version)])
        try:
            nothing = SCHEMA.empty_table()
            write_deltalake(self._created(), nothing, mode="append", commit_properties=noted)
        except (DeltaError, OSError) as fault:
            raise self._failed("could not be written", str(fault), AGAIN) from fault

    def project(self, recorded: Sequence[Recorded], table_name: str) -> None:
        """Write the rows of a pipeline's entries that are not there yet, in one commit.

        Every entry must carry its ``rows`` (see ``tables.counting``). Raises CommitFailed.
        """
        if not recorded:
            return
        pipeline = recorded[0].entry.pipeline
        for _ in range(3):
            table = self._created()
            stands = table.transaction_version(app_of(pipeline)) or 0
            missing = [each for each in recorded if each.entry.sequence > stands]
            if not missing:
                return
            try:
                self._append(table, missing, table_name)
                return
            except CommitFailedError:  # somebody was faster: look again
                continue
        raise self._failed("refused three times", "a conflict each time", AGAIN)

    def rebuild(self, recorded: Sequence[Recorded], table_name: str) -> None:
        """Replace the rows of these consecutive entries; see ``project``.

        Later rows stay, and so does the newest sequence: a driver may be running, and a
        table that knows more than the log is a finding (RM415) that must not be wiped out.
        """
        if not recorded:
            return
        first, last = recorded[0].entry, recorded[-1].entry
        table = self._created()
        sequence = max(last.sequence, table.transaction_version(app_of(first.pipeline)) or 0)
        between = f"sequence >= {first.sequence} AND sequence <= {last.sequence}"
        try:
            write_deltalake(
                table,
                rows_of(recorded, table_name),
                mode="overwrite",
                predicate=f"pipeline = '{first.pipeline}' AND {between}",
                commit_properties=_commit_properties(recorded[-1], sequence),
            )
        except (DeltaError, OSError) as fault:
            raise self._failed("could not be rebuilt", str(fault), REBUILD) from fault

    def _append(self, table: DeltaTable, missing: Sequence[Recorded], table_name: str) -> None:
        try:
            write_deltalake(
                table,
                rows_of(missing, table_name),
                mode="append",
                commit_properties=_commit_properties(missing[-1], missing[-1].entry.sequence),
            )
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as fault:
            raise self._failed("could not be written", str(fault), AGAIN) from fault

    def _created(self) -> DeltaTable:
        """The table to write to, created empty where there is none: a write that creates has
        no ``txn`` to compare with, so of two at once both would stand.
        """
        found = self._refreshed()
        if found is not None:
            return found
        try:
            with suppress(CommitFailedError):  # somebody was faster
                DeltaTable.create(str(self.path), SCHEMA, mode="ignore")
            self._table = DeltaTable(str(self.path))
        except (DeltaError, OSError) as fault:
            raise self._failed("could not be created", str(fault), REBUILD) from fault
        return self._table

    def _refreshed(self) -> DeltaTable | None:
        try:
            there = DeltaTable.is_deltatable(str(self.path))
            if there and self._table is None:
                self._table = DeltaTable(str(self.path))
            elif there and self._table is not None:
                self._table.update_incremental()
            elif self._table is not None:  # a write would bring back a log without beginning
                raise self._failed("is gone", "no table there", AGAIN)
        except (DeltaError, OSError) as fault:
            raise self._failed("cannot be read", str(fault), REBUILD) from fault
        return self._table

    def _failed(self, how: str, found: str, remedy: str) -> CommitFailed:
        what = f"the offsets table {how}; the target table is as it should be"
        return CommitFailed(what, where=str(self.path), found=found, remedy=remedy)


AGAIN = "Run again: the start brings the offsets table up to date"
REBUILD = "Delete its folder, then run: rivermouth offsets rebuild"


def app_of(pipeline: str) -> str:
    """The ``appId`` under which a pipeline's rows are written."""
    return f"{app_id(pipeline)}/offsets"


def _halted(pipeline: str) -> str:
    return f"{app_id(pipeline)}/halted"


def _commit_properties(last: Recorded, sequence: int) -> CommitProperties:
    transaction = Transaction(app_of(last.entry.pipeline), sequence, last.timestamp_ms)
    return CommitProperties(app_transactions=[transaction])


def rows_of(recorded: Sequence[Recorded], table_name: str) -> pa.Table:
    """The rows of entries, each with its ``rows``: one for each of its ranges."""
    rows: list[dict[str, object]] = [
        {
            "pipeline": each.entry.pipeline,
            "sequence": each.entry.sequence,
            "topic": offset_range.topic,
            "partition": offset_range.partition,
            "from_offset": offset_range.from_offset,
            "until_offset": offset_range.until_offset,
            "end_offset": each.entry.ends.get(offset_range.topic_partition),
            "records": counts.applied + counts.quarantined,
            "applied": counts.applied,
            "quarantined": counts.quarantined,
            "table_name": table_name,
            "table_version": each.version,
            "commit": each.entry.commit,
            "committed_at": each.timestamp_ms * 1000,
            "topic_id": each.entry.topics.get(offset_range.topic),
            "cluster_id": each.entry.cluster,
        }
        for each in recorded
        for offset_range, counts in zip(each.entry.ranges, each.entry.rows or (), strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
