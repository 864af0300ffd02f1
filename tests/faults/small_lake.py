"""A small lake by hand, without a broker: what an operator accepted, as good runs leave it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.faults.checker.at_length import as_written
from tests.faults.checker.evidence import Evidence, Place, Watched
from tests.faults.checker.kafka import Facts
from tests.faults.checker.scene import Scene

STAMP_MS = 1_700_000_000_000
STAMP = datetime.fromtimestamp(STAMP_MS / 1000, timezone.utc)
NAMES = ("topic", "partition", "offset", "timestamp")
TYPES = (pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", tz="UTC"))
KAFKA = pa.struct([*zip(NAMES, TYPES, strict=True)])
ROW = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("_kafka", KAFKA)])
QUARANTINE = pa.schema(
    [
        ("commit", pa.string()),
        *zip(NAMES[:3], TYPES[:3], strict=True),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
Row = tuple[int, int, int, int]
"""id, n, partition, offset."""


class Record:
    """A record as librdkafka would give it."""

    def __init__(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        self._facts = (offset, key, value)

    def offset(self) -> int:
        return self._facts[0]

    def key(self) -> bytes | None:
        return self._facts[1]

    def value(self) -> bytes | None:
        return self._facts[2]

    def timestamp(self) -> tuple[int, int]:
        return 1, STAMP_MS


class Broker:
    """One topic in memory, which may be created again or cut."""

    def __init__(self) -> None:
        self.id, self.cluster = "first", "k"
        self.logs: dict[int, list[Record]] = {}
        self.aborted: set[Record] = set()

    def abort(self, id_: int, n: int) -> None:
        """A record of a transaction that was aborted."""
        self.add((id_, n))
        self.aborted.add(self.logs[0][-1])

    def add(self, *rows: tuple[int, int], partition: int = 0) -> None:
        """Records of id and n; an n below 0 makes one that cannot be decoded."""
        log = self.logs.setdefault(partition, [])
        for id_, n in rows:
            value = b'{"id":%d,"n":%d}' % (id_, n) if n >= 0 else b"?"
            log.append(Record(len(log), b"%d" % id_, value))

    def bury(self, id_: int, partition: int = 0) -> None:
        """A tombstone."""
        log = self.logs.setdefault(partition, [])
        log.append(Record(len(log), b"%d" % id_, None))

    # What the checker asks for, see ``kafka.client``.

    def facts(self, topics: Iterable[str]) -> Facts:
        return Facts(self.cluster, dict.fromkeys(topics, self.id), frozenset())

    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        there = (each for each in places if each[1] in self.logs)
        return {each: (0, len(self.logs[each[1]])) for each in there}

    def read(
        self, ranges: Mapping[Place, tuple[int, int]], *, committed: bool
    ) -> Iterator[tuple[Place, list[Any]]]:
        for place, (start, until) in ranges.items():
            log = self.logs[place[1]][start:until]
            yield place, [each for each in log if not committed or each not in self.aborted]


@dataclass
class Small:
    """Pipeline ``p`` from topic ``t`` into one table, written as it should be."""

    folder: Path
    keys: tuple[str, ...] = ()
    broker: Broker = field(default_factory=Broker)
    sequence: int = 0
    position: dict[str, int] = field(default_factory=dict)
    accepted: list[list[Any]] = field(default_factory=list)

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "t" / "p"

    @property
    def evidence(self) -> Evidence:
        columns = (("id", "BIGINT"), ("n", "BIGINT"))
        order = ("n",) if self.keys else ()
        form = "string" if self.keys else None
        where = (self.table, self.table.with_name("p_quarantine"), columns)
        watched = Watched("p", ("t",), *where, self.keys, order, form)
        return Evidence("", self.folder / "lake", (watched,))

    @property
    def version(self) -> int:
        return DeltaTable(str(self.table)).version()

    def batch(
        self,
        rows: Sequence[Row],
        *ranges: tuple[int, int, int],
        bad: Sequence[tuple[int, int, bytes, bytes]] = (),
    ) -> None:
        """A batch over ``ranges``; ``rows`` are added, or all that the table holds then."""
        for partition, _, until in ranges:
            self.position[str(partition)] = until
        commit = str(uuid.uuid4())
        if bad:
            quarantined = [
                {
                    "commit": commit,
                    "topic": "t",
                    "partition": p,
                    "offset": at,
                    "key": key,
                    "value": value,
                }
                for p, at, key, value in bad
            ]
            quarantine = self.evidence.pipelines[0].quarantine
            write_deltalake(
                str(quarantine), pa.Table.from_pylist(quarantined, QUARANTINE), mode="append"
            )
        self.entry([["t", *each] for each in ranges], commit, rows, bad=len(bad))

    def stay(self, **facts: Any) -> None:
        """An entry at the position, which reads nothing: one that accepts something."""
        ranges = [["t", int(each), at, at] for each, at in self.position.items()]
        self.entry(ranges, str(uuid.uuid4()), None, **facts)

    def changed(self, kinds: Sequence[str], moved: Sequence[list[Any]], **facts: Any) -> None:
        """An operator accepts that the source is another one."""
        for _, partition, _, now in moved:
            self.position.pop(str(partition), None)
            if now is not None:
                self.position[str(partition)] = now
        self.accepted += [[each, self.sequence + 1] for each in kinds]
        self.stay(changes={"kinds": [*kinds], **facts, "moved": [*moved]})

    def entry(
        self,
        ranges: list[list[Any]],
        commit: str,
        rows: Sequence[Row] | None,
        bad: int = 0,
        **more: Any,
    ) -> None:
        """Commit an entry, with rows or without, and project it."""
        self.sequence += 1
        facts: dict[str, Any] = {"rivermouth": 1, "pipeline": "p", "sequence": self.sequence}
        facts |= {"commit": commit, "cluster": self.broker.cluster, "table": "x", "config": {}}
        facts |= {"topics": {"t": self.broker.id}, "ranges": ranges, **more}
        facts |= {"columns": [["id", "BIGINT"], ["n", "BIGINT"]]}
        facts |= {"position": {"t": dict(self.position)}, "accepted": [*self.accepted]}
        properties = CommitProperties(
            app_transactions=[Transaction("rivermouth/p", self.sequence)],
            custom_metadata={"userMetadata": json.dumps(as_written(facts))},
        )
        mode: Any = "overwrite" if self.keys and rows is not None else "append"
        write_deltalake(str(self.table), arrow(rows or ()), mode=mode, commit_properties=properties)
        self._project(facts, bad)

    def _project(self, facts: Mapping[str, Any], bad: int) -> None:
        common: dict[str, Any] = {
            "pipeline": "p",
            "topic": "t",
            "table_name": "t.p",
            "end_offset": None,
        }
        common |= {"sequence": facts["sequence"], "commit": facts["commit"]}
        common |= {"table_version": self.version, "topic_id": self.broker.id}
        common |= {"cluster_id": self.broker.cluster}
        rows = []
        for _, partition, start, until in facts["ranges"]:
            read = self.broker.logs.get(partition, [])[start:until]
            records = until - start - sum(each in self.broker.aborted for each in read)
            counts = {"applied": records - bad, "quarantined": bad, "records": records}
            counts["skipped"] = 0
            place = {"partition": partition, "from_offset": start, "until_offset": until}
            rows.append({**common, **place, **counts})
        types = [(name, pa.int64()) for name in rows[0] if name.endswith("_offset")]
        schema = pa.Table.from_pylist(rows).schema
        for name, kind in types:
            schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
        offsets = self.evidence.offsets
        write_deltalake(str(offsets), pa.Table.from_pylist(rows, schema), mode="append")

    def delete(self, predicate: str) -> int:
        """Somebody deletes rows; the version at which that is."""
        DeltaTable(str(self.table)).delete(predicate)
        return self.version

    def recreate(self, *rows: tuple[int, int]) -> None:
        """The topic is deleted and created again, with other records."""
        self.broker.id = "third" if self.broker.id == "second" else "second"
        self.broker.logs = {}
        self.broker.add(*rows)

    def rewrite(self, change: Callable[[list[dict[str, Any]]], object]) -> None:
        """Somebody makes small files large, and ``change`` has its way with the rows."""
        scene = Scene(self.folder, self.evidence)
        files = scene.files(self.table)
        rows = [row for each in files for row in pq.read_table(each).to_pylist()]
        change(rows)
        made = f"{uuid.uuid4()}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, ROW), self.table / made)
        common = {"dataChange": False, "partitionValues": {}}
        removed = [{"remove": {"path": each.name, **common}} for each in files]
        size = (self.table / made).stat().st_size
        added = {"path": made, "size": size, "modificationTime": STAMP_MS, **common}
        info = {"commitInfo": {"operation": "OPTIMIZE"}}
        scene.add_commit(self.table, info, *removed, {"add": added})


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as the table holds them."""
    kafka = [dict(zip(NAMES, ("t", p, at, STAMP), strict=True)) for _, _, p, at in rows]
    ids, numbers = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table([ids, numbers, pa.array(kafka, KAFKA)], schema=ROW)
