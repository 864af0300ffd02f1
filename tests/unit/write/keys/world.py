"""A table by key without Spark: tasks that are called by hand, and a driver that commits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from deltalake import Schema

from rivermouth.config import Pipeline
from rivermouth.config.registry import resolve
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.formats.tasks import decoder_of
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.warehouse.delta.partitions import Partition
from rivermouth.write.files.bad_records import LEAVES, QuarantineTarget, folder_of
from rivermouth.write.files.data_files import Files, Folder
from rivermouth.write.files.table import FilesTable
from rivermouth.write.files.writing import Writing, Written, collected
from rivermouth.write.keys.effect import ByFiles, Change, change_of
from rivermouth.write.keys.index import KeyIndex
from rivermouth.write.keys.runs import Shelf
from rivermouth.write.rows import Keyed
from tests.reading import rows_at

RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
KAFKA = pa.struct([each for each in RAW if each.name not in ("key", "value")])
FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}

Value = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """``value`` None: a tombstone of ``key``. ``gone``: an event that deletes it."""

    partition: int
    offset: int
    key: Value
    value: Value | None
    gone: bool = False

    def bytes(self, *, events: bool) -> bytes | None:
        """Its value; of an event where records are such."""
        if self.value is None:
            return None
        row, none = dict(self.value), None
        event = {"op": "d" if self.gone else "u", "before": row if self.gone else none}
        event["after"] = none if self.gone else row
        return json.dumps(event if events else row).encode()


@dataclass
class KeyedTable:
    """The table of a pipeline in a folder, and the index of its driver."""

    path: Path
    pipeline: Pipeline
    sequence: int = 0
    read: list[tuple[int, int]] = field(default_factory=list)
    table: FilesTable = field(init=False)
    index: KeyIndex = field(init=False)
    by_files: ByFiles = field(init=False)

    def __post_init__(self) -> None:
        self.table = FilesTable(Store.of_folder(self.path), "p", files=True)
        if not self.table.exists():
            self.table.log.commit(Commit("CREATE TABLE", definition=self._definition()))
        self.restart()

    def _definition(self) -> list[Mapping[str, Mapping[str, Any]]]:
        schema = schema_of(self.pipeline.table_columns)
        if not self.pipeline.shape.totals:
            schema = schema.append(pa.field("_kafka", KAFKA))
        metadata = {
            "id": str(uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(schema).to_json(),
            "partitionColumns": [*self.pipeline.target.partition_by],
            "configuration": {"delta.enableDeletionVectors": "true"},
            "createdTime": 0,
        }
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}
        return [{"protocol": protocol}, {"metaData": metadata}]

    def restart(self) -> None:
        """Forget the index but for what is on the disk. ``read`` tells of files that it reads."""
        changes: Keyed = resolve(self.pipeline.shape.changes)(self.pipeline)
        assert changes.by_files is not None
        self.by_files = changes.by_files
        keys = self.by_files.columns(schema_of(self.pipeline.table_columns))
        shelf = Shelf(self.path.parent / "index", keys.width, keys.values.width)
        self.read = []
        self.index = KeyIndex(
            self.table.log, keys, shelf, lambda done, total: self.read.append((done, total))
        )

    def written(self, tasks: Iterable[Sequence[Record]], at_once: int = 5) -> Written:
        """What so many tasks write."""
        told: list[dict[str, Any]] = []
        into = folder_of(self.table.store, self.table.definition())
        bad_records = Store.of_folder(Path(f"{self.path}_bad"))
        bad = QuarantineTarget(Folder(bad_records, LEAVES, tight=False), "c", "p", 1, {})
        writing = Writing(into, bad, decoder_of(self.pipeline), self.by_files.reduction)
        for records in tasks:
            parts = [records[at : at + at_once] for at in range(0, len(records), at_once)]
            events = self.pipeline.source.envelope is not None
            for batch in writing(raw(each, events=events) for each in parts):
                told += batch.to_pylist()
        return collected(told)

    def change(self, written: Written) -> Change:
        """What these files change in the table as it is now."""
        self.table.newest()
        self.index.follow()
        return change_of(self.by_files.effect(written, self.index, self.files), self.index)

    def files(self, within: Partition | None = None) -> Files:
        """Those that the driver writes."""
        return Files(folder_of(self.table.store, self.table.definition()), 0, within)

    def land(self, *tasks: Sequence[Record]) -> Change:
        """Land a batch."""
        self.table.newest()
        change = self.change(self.written(tasks))
        self.sequence += 1
        assert self.table.log.commit(replace(change.commit, txns={"p": self.sequence}))
        change.stands(self.index)
        return change

    def others(self, commit: Commit) -> None:
        """Somebody else's commit."""
        other = FilesTable(Store.of_folder(self.path), "other", files=True)
        other.newest()
        assert other.log.commit(commit)

    def rows(self, version: int | None = None) -> list[dict[str, Any]]:
        """All rows, as delta-rs reads them."""
        return rows_at(self.path, version)

    def state(self) -> dict[tuple[Any, ...], tuple[int, int]]:
        """Where the record of each key's row came from."""
        keys = self.pipeline.target.keys
        found = {
            tuple(each[name] for name in keys): (
                each["_kafka"]["partition"],
                each["_kafka"]["offset"],
            )
            for each in self.rows()
        }
        assert len(found) == len(self.rows()), "a key twice"
        return found


def raw(records: Sequence[Record], *, events: bool) -> pa.RecordBatch:
    """Records as Spark gives them to a task."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "key": json.dumps(dict(each.key)).encode(),
                "value": each.bytes(events=events),
                "topic": "t",
                "partition": each.partition,
                "offset": each.offset,
                "timestamp": None,
            }
            for each in records
        ],
        RAW,
    )


def a_pipeline(
    *keys: str,
    mode: str = "upsert",
    order_by: Sequence[str] = (),
    tombstones: bool = False,
    events: bool = False,
    stay: bool = False,
    **target: Any,
) -> Pipeline:
    """Of the columns ``id``, ``name``, ``rank`` and ``text``. ``events``: records are such,
    and ``stay``: rows of deleted keys do."""
    source: dict[str, Any] = {"topics": ("t",), "format": "json"}
    source |= {"envelope": "debezium"} if events else {}
    source |= {"key": "json"} if tombstones else {}
    target |= {"table": "silver.t", "mode": mode, "keys": keys or ("id",)}
    target |= {"order_by": tuple(order_by)} if order_by else {}
    columns = "id BIGINT, name STRING, rank INT, text STRING"
    if stay:
        source |= {"on_delete": "row"}
        columns += ", _op STRING"
    given = {"name": "p", "source": source, "ddl": columns, "target": target}
    return Pipeline.model_validate(given)
