"""In-memory stand-ins for what ``verify`` reads: Kafka and tables; values in few words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from rivermouth.config import Config, TableName, load
from rivermouth.verification.beginning import Since
from rivermouth.verification.kafka.client import Identity
from rivermouth.verification.ledger.coverage import Coverage
from rivermouth.verification.ledger.entry import Commit, LedgerEntry, LedgerRange, Partition
from rivermouth.verification.ledger.erased import Erased
from rivermouth.verification.ledger.log import Ledger
from rivermouth.verification.pipeline import verify_pipeline
from rivermouth.verification.proofs.proof import Bounds, Stored, Workspace
from rivermouth.verification.proofs.quarantine import Quarantined
from rivermouth.verification.proved import Recording
from rivermouth.verification.result import Findings, Kind, PipelineProof, Unchecked
from rivermouth.verification.subject import Subject
from rivermouth.verification.tables.ports import canonical
from tests.faults.checker.at_length import as_written

TOPIC = "t"
ZERO: Partition = (TOPIC, 0)
STAMP_MS = 5
KAFKA = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("_kafka", KAFKA)])
COLUMNS = [["id", "BIGINT"], ["n", "BIGINT"]]
QUARANTINE = pa.schema(
    [
        ("commit", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
CREATE = Commit({"operation": "CREATE TABLE"}, {})


def commit(
    sequence: int, start: int, until: int, *, pipeline: str = "p", topic: str = "t", **changes: Any
) -> Commit:
    """A commit with an entry that covers one range of partition 0; ``changes``: at length."""
    facts = {
        "rivermouth": 1,
        "pipeline": pipeline,
        "sequence": sequence,
        "commit": f"{pipeline}-{sequence}",
        "cluster": "cluster",
        "table": "table",
        "topics": {topic: "id"},
        "ranges": [[topic, 0, start, until]],
        "position": {topic: {"0": until}},
        "config": {},
        "columns": COLUMNS,
        **changes,
    }
    info = {"operation": "WRITE", "userMetadata": json.dumps(as_written(facts))}
    return Commit(info, {f"rivermouth/{pipeline}": sequence})


def by_others(operation: str, **parameters: Any) -> Commit:
    """A commit that is none of a pipeline."""
    return Commit({"operation": operation, "operationParameters": parameters}, {})


def restore(version: object) -> Commit:
    return by_others("RESTORE", version=version)


def keyed(commits: Sequence[Commit], config: Config) -> list[Commit]:
    """The same commits; an entry that does not tell ``source.key`` has that of the pipeline."""
    found = []
    for each in commits:
        facts = json.loads(each.info.get("userMetadata", "{}"))
        if "config" in facts:
            facts["config"] = {"key": config.pipelines["p"].source.key, **facts["config"]}
            each = replace(each, info={**each.info, "userMetadata": json.dumps(facts)})
        found.append(each)
    return found


def message(
    offset: int, value: bytes | None, key: bytes | None = None, partition: Partition = ZERO
) -> Message:
    """A record as the client of Kafka gives it."""
    return Message(
        topic=partition[0],
        partition=partition[1],
        offset=offset,
        key=key,
        value=value,
        timestamp=(1, STAMP_MS),
    )


def value(id_: int, n: int | None) -> bytes:
    return json.dumps({"id": id_, "n": n}).encode()


def row(id_: int, n: int | None, offset: int | None, partition: Partition = ZERO) -> dict[str, Any]:
    """A row as a good run writes it."""
    names = ("topic", "partition", "offset", "timestamp")
    return {
        "id": id_,
        "n": n,
        "_kafka": dict(zip(names, (*partition, offset, STAMP_MS * 1000), strict=True)),
    }


@dataclass
class MemorySource:
    """A ``Source``: visible records, and what else Kafka knows of its partitions."""

    records: Mapping[Partition, Sequence[Message]] = field(default_factory=dict)
    first: Mapping[Partition, int] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)
    aborted: frozenset[tuple[Partition, int]] = frozenset()
    cluster: str = "cluster"
    topics: Mapping[str, str] = field(default_factory=lambda: {TOPIC: "id"})
    compacted: frozenset[str] = frozenset()
    unknown_policy: frozenset[str] = frozenset()
    asked: list[tuple[Partition, int]] = field(default_factory=list)
    """The offsets that ``existing`` was asked for."""

    def identity(self, topics: Iterable[str]) -> Identity:
        known = {name: self.topics[name] for name in topics if name in self.topics}
        return Identity(self.cluster, known, self.compacted, self.unknown_policy & known.keys())

    def partitions(self, topics: Iterable[str]) -> list[Partition]:
        return [each for each in self.records if each[0] in topics]

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {each: self.first.get(each, 0) for each in partitions}

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {each: self.ends.get(each, 1 << 40) for each in partitions}

    def read(
        self, ranges: Mapping[Partition, tuple[int, int]]
    ) -> Iterator[tuple[Partition, list[Message]]]:
        for partition, (start, until) in ranges.items():
            for each in self.records.get(partition, ()):
                if start <= (each.offset() or 0) < until:
                    yield partition, [each]  # one by one: every border between batches
            yield partition, []

    def existing(self, partition: Partition, offsets: Iterable[int]) -> set[int]:
        wanted = [*offsets]
        self.asked += [(partition, each) for each in wanted]
        visible = {each.offset() for each in self.records.get(partition, ())}
        return {each for each in wanted if each in visible or (partition, each) in self.aborted}


@dataclass
class Expiring(MemorySource):
    """Retention removes what is before ``gone`` of a partition, once its first offset was asked
    for, or at once where it is ``seen``.
    """

    gone: Mapping[Partition, int] = field(default_factory=dict)
    seen: set[Partition] = field(default_factory=set)

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        told = {each: self.gone.get(each, 0) if each in self.seen else 0 for each in partitions}
        self.seen |= {*told}
        return told


class MemoryRows:
    """``Rows`` of a table; ``txn`` is that of the snapshot."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SCHEMA, txn: int | None = None
    ) -> None:
        self.schema = schema
        self._rows = rows
        self._txn = txn
        self.predicates: list[str | None] = []

    def transaction(self, app: str) -> int | None:
        return self._txn

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        self.predicates.append(predicate)
        rows = self._rows
        if predicate == "_tombstone IS NULL":
            rows = [each for each in rows if each["_tombstone"] is None]
        for start in range(0, len(rows), 2):  # several batches
            batch = pa.RecordBatch.from_pylist(list(rows[start : start + 2]), self.schema)
            yield canonical(batch.select(list(columns)))


class MemoryCommits:
    """``Commits``: entries and other operations, from version ``first`` on."""

    def __init__(self, commits: Sequence[Commit], first: int = 0, checkpointed: int = -1) -> None:
        self._commits = {first + number: each for number, each in enumerate(commits)}
        self._checkpointed = checkpointed

    def versions(self) -> list[int]:
        return sorted(self._commits)

    def checkpointed(self) -> int:
        return self._checkpointed

    def read(self, version: int, findings: Findings) -> Commit:
        return self._commits[version]

    def has(self, version: int) -> bool:
        return version in self._commits


class MemoryTables:
    """``Tables`` by name: their commits and rows."""

    def __init__(
        self,
        rows: Mapping[str, MemoryRows] | None = None,
        commits: Mapping[str, MemoryCommits] | None = None,
    ) -> None:
        self._rows = rows or {}
        self._commits = commits or {}

    def commits(self, table: TableName) -> MemoryCommits:
        return self._commits[str(table)]

    def rows(self, table: TableName, version: int | None = None) -> MemoryRows:
        return self._rows[str(table)]

    def exist(self, table: TableName) -> bool:
        return str(table) in self._rows


def configured(folder: Path, *topics: str, **target: Any) -> Config:
    """A configuration of one pipeline ``p`` into ``t.p``; ``schema`` and ``columns`` are those of
    its records, and ``key`` and ``envelope`` are of its source.
    """
    schema = target.pop("schema", "id BIGINT, n BIGINT")
    columns = target.pop("columns", {})
    source: dict[str, Any] = {"topics": [*(topics or (TOPIC,))], "format": "json"}
    source |= {each: target.pop(each) for each in ("key", "envelope") if each in target}
    target = {"table": "t.p", **target}
    pipeline = {"source": source, "schema": schema, "columns": columns, "target": target}
    text = {
        "version": 1,
        "kafka": {"bootstrap.servers": "127.0.0.1:1"},
        "warehouse": "./lake",
        "pipelines": {"p": pipeline},
    }
    file = folder / "rivermouth.yml"
    file.write_text(json.dumps(text), encoding="utf-8")
    return load(file)


def entry(sequence: int, *ranges: LedgerRange, **facts: Any) -> LedgerEntry:
    """An entry at the version of its sequence, whose position is the end of its ranges."""
    return LedgerEntry(
        **{
            "version": sequence,
            "sequence": sequence,
            "commit": f"commit-{sequence}",
            "cluster": "cluster",
            "topics": {TOPIC: "id"},
            "ranges": ranges,
            "position": {each.partition: each.until for each in ranges},
            "columns": (),
            **facts,
        }
    )


def span(start: int, until: int, partition: Partition = ZERO) -> LedgerRange:
    return LedgerRange(partition, start, until)


def subject(
    config: Config, source: MemorySource, *entries: LedgerEntry, trimmed: bool = False, **facts: Any
) -> Subject:
    """A pipeline whose effective entries are these; all that it covers is readable.

    An entry without ``columns`` or ``config`` has those of the pipeline.
    """
    pipeline = config.pipelines["p"]
    names, identity = tuple(each.name for each in pipeline.columns), pipeline.identity
    entries = tuple(
        replace(each, columns=each.columns or names, config=each.config or identity)
        for each in entries
    )
    coverage, findings = Coverage(entries), Findings("p")
    ledger = Ledger(len(entries), entries, entries, trimmed)
    known = {
        "readable": {each: (its.start, its.until) for each, its in coverage.spans.items()},
        "compacted": source.compacted | source.unknown_policy,
        "shared": frozenset(),
        "shared_parts": frozenset(),
        "retired": Coverage(()),
        "erased": Erased(Ledger(-1), Coverage(()), findings),  # no DELETE is accepted
        **facts,
    }
    return Subject(pipeline, ledger, coverage, source, findings, **known)


def stored(
    rows: Sequence[Mapping[str, Any]],
    quarantine: Mapping[Partition, Quarantined] | None = None,
    schema: pa.Schema = SCHEMA,
) -> Stored:
    return Stored(MemoryRows(rows, schema), quarantine or {})


def quarantined(*records: Message, large: bool = False) -> Quarantined:
    """These records in quarantine; ``large``: as good ones whose totals would not fit."""
    offsets = np.array([each.offset() for each in records], np.int64)
    hashes = np.array([hash((each.key(), each.value())) for each in records], np.int64)
    return Quarantined(offsets, hashes, np.full(len(records), large))


def workspace(folder: Path, bounds: Bounds | None = None) -> Workspace:
    """Bounds so small that everything is split."""
    return Workspace(folder, bounds or Bounds(window=3, bucket=2), lambda *told: None)


FEW = Bounds(1000, 2)


def verification(
    config: Config,
    source: MemorySource,
    rows: Sequence[Mapping[str, Any]] | MemoryRows,
    commits: Sequence[Commit],
    quarantine: Sequence[Mapping[str, Any]] = (),
    *,
    projected: MemoryRows | None = None,
    first: int = 0,
    bounds: Bounds = FEW,
    since: Since | None = None,
    known: Recording | None = None,
) -> PipelineProof:
    """The verification of ``p``, whose log begins at the version ``first``.

    ``projected`` is the offsets table; None: there is none.
    """
    table = rows if isinstance(rows, MemoryRows) else MemoryRows(rows)
    tables = {"t.p": table, "t.p_quarantine": MemoryRows(quarantine, QUARANTINE)}
    tables |= {} if projected is None else {"rivermouth.offsets": projected}
    log = MemoryCommits(keyed(commits, config), first, first)
    return verify_pipeline(
        config,
        MemoryTables(tables, {"t.p": log}),
        config.pipelines["p"],
        source,
        lambda *told: None,
        bounds,
        since=since,
        known=known,
    )


def proof_of(of: Subject | Findings | PipelineProof) -> PipelineProof:
    of = of.findings if isinstance(of, Subject) else of
    return of.proof() if isinstance(of, Findings) else of


def found(of: Subject | Findings | PipelineProof) -> dict[Kind, int]:
    """What was found, by kind."""
    return {kind: number for kind, number in proof_of(of).counts.items() if number}


def problems(of: Subject | Findings) -> tuple[str, ...]:
    return proof_of(of).problems


def left(of: Subject | Findings | PipelineProof) -> dict[Unchecked, int]:
    """What was not checked, by kind."""
    return proof_of(of).left
