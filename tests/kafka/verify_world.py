"""A table that a test writes as a good run would write it, so that it can corrupt it.

Real Delta through delta-rs and real records in a real broker, but no Spark and no code of the
writer: what ``verify`` proves here depends on the written formats alone.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rivermouth.config import Config, load
from rivermouth.storage.lake import Lake
from rivermouth.verification import Bounds, PipelineProof, Since, beside_offsets, verify
from rivermouth.verification.kafka.client import KafkaSource, client_options
from rivermouth.verification.proved import Place, Proved
from tests.faults.checker.at_length import as_written, at_length
from tests.kafka.topics import delete_before
from tests.waiting import wait_for_markers

KAFKA = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
ROW = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("_kafka", KAFKA)])
QUARANTINE = pa.schema(
    [
        ("commit", pa.string()),
        ("pipeline", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
STAMP_MS = int(time.time()) * 1000  # any older, and retention would take the records
STAMP = datetime.fromtimestamp(STAMP_MS / 1000, timezone.utc)

Range = tuple[int, int, int]  # partition, from, until
Row = tuple[int, int, int, int]  # id, n, partition, offset
Bad = tuple[int, int, bytes | None, bytes | None]  # partition, offset, key, value


@dataclass
class Batch:
    """What one commit will hold."""

    ranges: Sequence[Range]
    rows: list[Row] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    records: Mapping[int, int] = field(default_factory=dict)
    """Visible records by partition, for the offsets table."""
    sequence: int = 0
    commit: str = field(default_factory=lambda: str(uuid.uuid4()))
    topic_id: str = ""


@dataclass
class World:
    """One pipeline ``p`` from ``topic`` into ``t.p``, and what writes its tables."""

    folder: Path
    servers: str
    topic: str
    mode: str = "append"
    key: str | None = None
    position: dict[str, int] = field(default_factory=dict)

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "t" / "p"

    @property
    def quarantine(self) -> Path:
        return self.folder / "lake" / "t" / "p_quarantine"

    @property
    def offsets(self) -> Path:
        return self.folder / "lake" / "rivermouth" / "offsets"

    @property
    def config(self) -> Config:
        source: dict[str, Any] = {"topics": [self.topic], "format": "json"}
        target: dict[str, Any] = {"table": "t.p"}
        if self.mode == "upsert":
            target |= {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}
            source |= {"key": self.key} if self.key else {}
        pipeline = {"source": source, "schema": "id BIGINT, n BIGINT", "target": target}
        text = {
            "version": 1,
            "kafka": {"bootstrap.servers": self.servers},
            "warehouse": "./lake",
            "pipelines": {"p": pipeline},
        }
        file = self.folder / "rivermouth.yml"
        file.write_text(json.dumps(text), encoding="utf-8")
        return load(file)

    def verify(
        self, bounds: Bounds | None = None, *, strict: bool = False, part: bool = False
    ) -> PipelineProof:
        """Verify the pipeline; ``part``: only what came after its first entry."""
        if not part:
            return verify(self.config, bounds=bounds, strict=strict).pipelines[0]
        folder = beside_offsets(Lake.of(self.config))
        folder.write(self.first_entry())
        found = verify(self.config, bounds=bounds, since=Since(), proofs=folder, record=False)
        return found.pipelines[0]

    def first_entry(self) -> Proved:
        """A record of the entry in version 0 of the table."""
        log = self.table / "_delta_log" / f"{0:020d}.json"
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        [info] = [each["commitInfo"] for each in actions if "commitInfo" in each]
        entry = at_length(json.loads(info["userMetadata"]))
        place = Place(entry["sequence"], entry["commit"], 0)
        return Proved("p", "t.p", 1, place, entry["position"], 0, place.sequence, 0)

    def produce(
        self,
        records: Iterable[tuple[int, bytes | None, bytes | None]],
        *,
        commit: bool | None = None,
    ) -> None:
        """Write (partition, key, value); in one transaction where ``commit`` is not None."""
        options: dict[str, Any] = {"bootstrap.servers": self.servers, "enable.idempotence": True}
        if commit is not None:
            options["transactional.id"] = f"{self.topic}-writer"
        producer = Producer(options)
        if commit is not None:
            producer.init_transactions()
            producer.begin_transaction()
        for partition, key, value in records:
            producer.produce(self.topic, value, key, partition, timestamp=STAMP_MS)
        producer.flush()
        if commit is not None:
            end = producer.commit_transaction if commit else producer.abort_transaction
            end()
            wait_for_markers(options)

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records before ``offset`` in Kafka, as retention does."""
        delete_before(self.servers, self.topic, partition, offset)

    def write(self, batch: Batch, *, append: bool = True, project: bool = True) -> None:
        """Commit a batch as a writer would: quarantine ahead, rows and entry, projection."""
        identity = KafkaSource(client_options(self.config)).identity([self.topic])
        batch.topic_id = batch.topic_id or identity.topics[self.topic]
        if batch.bad:
            self.write_quarantine(batch)
        for partition, _, until in batch.ranges:
            self.position[str(partition)] = until
        entry = {
            "rivermouth": 1,
            "pipeline": "p",
            "sequence": batch.sequence,
            "commit": batch.commit,
            "cluster": identity.cluster,
            "table": "unused",
            "topics": {self.topic: batch.topic_id},
            "ranges": [[self.topic, *each] for each in batch.ranges],
            "position": {self.topic: dict(self.position)},
            "ends": {self.topic: dict(self.position)},
            "config": self.config.pipelines["p"].identity,
            "columns": [["id", "BIGINT"], ["n", "BIGINT"]],
        }
        self.commit_rows(batch.rows, as_written(entry), append=append)
        if project:
            version = DeltaTable(str(self.table)).version()
            self.project(self.offsets_rows(batch, version, identity.cluster))

    def commit_rows(
        self,
        rows: Sequence[Row],
        entry: Mapping[str, Any] | None = None,
        *,
        append: bool = True,
        txn: int | None = None,
    ) -> None:
        """Commit rows to the table (or replace all of them), with an entry or without."""
        properties = None
        if entry is not None:
            transaction = Transaction("rivermouth/p", entry["sequence"] if txn is None else txn)
            properties = CommitProperties(
                app_transactions=[transaction],
                custom_metadata={"userMetadata": json.dumps(entry)},
            )
        write_deltalake(
            str(self.table),
            self.arrow(rows),
            mode="append" if append else "overwrite",
            commit_properties=properties,
        )

    def arrow(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as the table holds them."""
        places = [(self.topic, partition, offset, STAMP) for _, _, partition, offset in rows]
        names = ("topic", "partition", "offset", "timestamp")
        kafka = [dict(zip(names, place, strict=True)) for place in places]
        ids, numbers = [row[0] for row in rows], [row[1] for row in rows]
        return pa.table([ids, numbers, pa.array(kafka, KAFKA)], schema=ROW)

    def write_quarantine(self, batch: Batch) -> None:
        """Append the bad records of a batch under its commit id."""
        rows = [
            {
                "commit": batch.commit,
                "pipeline": "p",
                "topic": self.topic,
                "partition": partition,
                "offset": offset,
                "key": key,
                "value": value,
            }
            for partition, offset, key, value in batch.bad
        ]
        table = pa.Table.from_pylist(rows, QUARANTINE)
        write_deltalake(str(self.quarantine), table, mode="append")

    def offsets_rows(self, batch: Batch, version: int, cluster: str) -> list[dict[str, Any]]:
        """What the offsets table says of a batch."""
        rows = []
        for partition, start, until in batch.ranges:
            bad = sum(1 for each in batch.bad if each[0] == partition)
            good = batch.records.get(partition, sum(1 for r in batch.rows if r[2] == partition))
            rows.append(
                {
                    "pipeline": "p",
                    "sequence": batch.sequence,
                    "topic": self.topic,
                    "partition": partition,
                    "from_offset": start,
                    "until_offset": until,
                    "end_offset": until,
                    "records": good + bad,
                    "applied": good,
                    "quarantined": bad,
                    "skipped": 0,
                    "table_name": "t.p",
                    "table_version": version,
                    "commit": batch.commit,
                    "topic_id": batch.topic_id,
                    "cluster_id": cluster,
                }
            )
        return rows

    def project(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows to the offsets table."""
        write_deltalake(str(self.offsets), pa.Table.from_pylist([*rows]), mode="append")

    def replace_table(self, path: Path, rows: pa.Table) -> None:
        """Put other rows into a table, without an entry."""
        write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite")


def again(batch: Batch, **changes: Any) -> Batch:
    """A copy of a batch under a commit id of its own."""
    return replace(batch, commit=str(uuid.uuid4()), **changes)


def value(id_: int, n: int | None) -> bytes:
    """A good record."""
    return (b'{"id":%d,"n":null}' % id_) if n is None else (b'{"id":%d,"n":%d}' % (id_, n))
