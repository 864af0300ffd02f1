"""Lakes for the page: logs and quarantines at times of their own, written as the product writes.

The data files of the tables themselves are named and not there: the page reads none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rivermouth.config import Config, Pipeline
from rivermouth.errors import KafkaUnreachable
from rivermouth.protocol.commits import app_id
from rivermouth.protocol.entry import Entry, RowCounts
from rivermouth.protocol.entry_json import to_json
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Position, TopicPartition, Watermarks
from rivermouth.report.reading import Report, read_report
from rivermouth.verification.proved import Place, Proved, RecordState
from rivermouth.warehouse.delta.actions import AddFile, Commit, schema_of, to_lines
from rivermouth.warehouse.delta.creation import creation
from rivermouth.warehouse.delta.log import ENGINE, DeltaLog, path_of
from rivermouth.write.files.bad_records import QUARANTINE
from tests.builders import CLUSTER, entry_after, span
from tests.folders import lake_of
from tests.unit.operate.doubles import Answering, configured

MINUTE = 60_000
BEGAN_MS = 1_795_950_000_000 // MINUTE * MINUTE
_COLUMNS = "commit STRING, pipeline STRING, code STRING"


def moment(ms: int) -> str:
    """As Delta notes it in statistics."""
    return str(pa.scalar(ms, pa.timestamp("ms")).as_py().isoformat(timespec="milliseconds")) + "Z"


@dataclass
class MadeLog:
    """The log of one table in the making."""

    log: DeltaLog
    version: int = -1

    def did(self, commit: Commit, at_ms: int) -> None:
        """One more version, as of this time."""
        base = None if self.version < 0 else self.version
        self.version += 1
        content = to_lines(commit.actions(base, at_ms, ENGINE))
        assert self.log.store.create(path_of(self.version), content)


@dataclass
class MadePipeline:
    """A pipeline whose batches are what a test says. Each has one data file."""

    config: Config
    name: str
    at_ms: int = BEGAN_MS
    entry: Entry | None = None
    topic: str = ""
    entries: list[Entry] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        lake, table = lake_of(self.config), self.pipeline.target.table
        self.topic = self.topic or next(iter(self.pipeline.source.topics))
        self.table = MadeLog(DeltaLog(lake.store(table)))
        self.folder = Path(lake.address(table.quarantine))
        self.quarantine = MadeLog(DeltaLog(lake.store(table.quarantine)))
        columns = [("id", "BIGINT"), ("_kafka", "STRUCT<topic: STRING, timestamp: TIMESTAMP>")]
        made = creation(schema_of(columns), {})
        self.id = str(next(e for e in made.definition if "metaData" in e)["metaData"]["id"])
        self.columns = columns
        self.table.did(made, self.at_ms)

    @property
    def pipeline(self) -> Pipeline:
        return self.config.pipelines[self.name]

    def waits(self, minutes: float) -> None:
        self.at_ms += int(minutes * MINUTE)

    def read(
        self,
        offsets: Sequence[int],
        bad: Mapping[str, int] | None = None,
        *,
        lag_s: float = 1.0,
        lost: bool = False,
        values: Sequence[bytes] = (b"{",),
    ) -> Entry:
        """A batch of so many offsets of partition 0, 1, …; of those of the first so many are bad,
        by their codes.
        """
        at = self.entry.position if self.entry else Position()
        begins = [at.get(TopicPartition(self.topic, n)) or 0 for n in range(len(offsets))]
        pairs = enumerate(zip(begins, offsets, strict=True))
        ranges = tuple(span(b, b + many, n, self.topic) for n, (b, many) in pairs)
        wrong = sum((bad or {}).values())
        counts = [RowCounts(0 if lost else each, 0) for each in offsets]
        if wrong:
            counts[0] = RowCounts(offsets[0] - wrong, wrong)
        made = entry_after(self.entry, *ranges, pipeline=self.name)
        self.entry = replace(
            made,
            table=self.id,
            topics={self.topic: f"id of {self.topic}"},
            config=self.pipeline.identity,
            rows=tuple(counts),
            lost=ranges if lost else (),
            base=self.table.version,
        )
        self.entries.append(self.entry)
        if wrong and bad:
            self._leave(self.entry, bad, values)
        rows = sum(offsets) - wrong
        self._commit(self.entry, 0 if lost else rows, self.at_ms - int(lag_s * 1000))
        return self.entry

    def _commit(self, entry: Entry, rows: int, newest_ms: int) -> None:
        greatest = {"_kafka": {"timestamp": moment(newest_ms)}}
        said = json.dumps({"numRecords": rows, "maxValues": greatest})
        size = 400 + 41 * rows
        files = [AddFile(f"{entry.commit}.parquet", size, self.at_ms, said)] if rows else []
        self.size += size if rows else 0
        txns = {app_id(self.name): entry.sequence}
        parameters = {"mode": "Append"}
        commit = Commit("WRITE", to_json(entry), txns, added=files, parameters=parameters)
        self.table.did(commit, self.at_ms)

    def _leave(self, entry: Entry, bad: Mapping[str, int], values: Sequence[bytes]) -> None:
        codes = [code for code, many in bad.items() for _ in range(many)]
        first = entry.ranges[0]
        rows = [
            {
                "commit": entry.commit,
                "pipeline": entry.pipeline,
                "sequence": entry.sequence,
                "topic": first.topic,
                "partition": first.partition,
                "offset": first.from_offset + n,
                "value": values[n % len(values)],
                "code": code,
                "reason": f"why {code}",
            }
            for n, code in enumerate(codes)
        ]
        if self.quarantine.version < 0:
            self.quarantine.did(creation(schema_of([("commit", "STRING")]), {}), self.at_ms)
        path = self.folder / f"{entry.commit}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, QUARANTINE), path)
        file = AddFile(path.name, path.stat().st_size, self.at_ms)
        self.quarantine.did(Commit("WRITE", added=[file]), self.at_ms)

    def adds_column(self, name: str) -> None:
        self.columns = [*self.columns, (name, "STRING")]
        told = json.loads(json.dumps(creation(schema_of(self.columns), {}).definition))
        actions = [each for each in told if "metaData" in each]
        actions[0]["metaData"]["id"] = self.id
        self.table.did(Commit("ADD COLUMNS", definition=actions), self.at_ms)

    def facts(self, beyond: int = 0, deleted: int = 0) -> KafkaFacts:
        """Kafka, with so many more offsets in partition 0, of which the first were deleted."""
        assert self.entry is not None
        marks = {each: Watermarks(0, end) for each, end in self.entry.position.offsets.items()}
        place = TopicPartition(self.topic, 0)
        end = marks[place].high
        marks[place] = Watermarks(end + deleted if deleted else 0, end + beyond)
        return KafkaFacts(CLUSTER, dict(self.entry.topics), marks)


def together(facts: Sequence[KafkaFacts]) -> KafkaFacts:
    """What Kafka says of all their topics."""
    topics = {name: each for it in facts for name, each in it.topics.items()}
    marks = {place: each for it in facts for place, each in it.watermarks.items()}
    return KafkaFacts(CLUSTER, topics, marks)


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


def hostile(folder: Path) -> Report:
    """A pipeline of whose texts each one that others may write is hostile."""
    config = configured(folder, p={"schema": "id BIGINT"})
    made = MadePipeline(config, "p", topic=HOSTILE)
    for _ in range(3):
        made.waits(1)
        made.read([10, 20], {HOSTILE: 2}, values=(HOSTILE.encode(),))
    made.table.did(Commit(HOSTILE), made.at_ms)
    made.adds_column(HOSTILE)
    away = Answering(made.facts(), failing={"facts": KafkaUnreachable(HOSTILE)})
    found = read_report(config, kafka=away, samples=2)
    [told] = found.pipelines
    status = replace(told.status, name=HOSTILE, table=HOSTILE)
    return replace(found, name=HOSTILE, pipelines=(replace(told, status=status),))


@dataclass
class MadeLake:
    """Three pipelines: ``orders`` with an outage, a recorded loss, and another one that halts it;
    ``clicks`` with a skew; ``payments`` with a peak of bad records and a new column.
    """

    folder: Path
    values: Sequence[bytes] = (b'{"id": ', b"\xff\xfe", b'{"id": "x"}')
    every: int = 10
    """So many minutes are between two batches."""

    def __post_init__(self) -> None:
        settings: dict[str, Any] = {"schema": "id BIGINT"}
        self.config = configured(self.folder, orders=settings, clicks=settings, payments=settings)
        self.made = {name: MadePipeline(self.config, name) for name in self.config.pipelines}
        self._draw = random.Random(46)
        orders, clicks, payments = self.made.values()
        for minute in range(0, 450, self.every):
            self._reads_orders(orders, minute)
            clicks.waits(self.every)
            clicks.read([self._about(10 if p == 5 else 1) for p in range(12)], lag_s=2 + minute / 6)
            self._reads_payments(payments, minute)

    def _about(self, busy: float) -> int:
        return int(self._draw.gauss(300, 20) * busy * self.every)

    def _reads_orders(self, orders: MadePipeline, minute: int) -> None:
        if 200 < minute <= 300:
            return  # nobody reads
        orders.waits(self.every)
        back = 300 < minute <= 300 + 2 * self.every
        if orders.at_ms < BEGAN_MS + minute * MINUTE:
            orders.waits(100)
            orders.read([900, 850, 870], lost=True)
        many = [self._about(6 if back else 1) for _ in range(3)]
        orders.read(many, lag_s=max(2.5, 6300 - (minute - 300) * 200) if minute > 300 else 2.5)

    def _reads_payments(self, payments: MadePipeline, minute: int) -> None:
        payments.waits(self.every)
        bad = {"RM605": 3} if minute % 40 == 0 else {}
        if 240 <= minute < 270:
            bad |= {"RM603": self._about(0.3), "RM602": self._about(0.1)}
        payments.read([self._about(1.3), self._about(1)], bad, values=self.values)
        if 270 <= minute < 270 + self.every:
            payments.adds_column("currency")

    @property
    def now_ms(self) -> int:
        return max(each.at_ms for each in self.made.values()) + 20_000

    def report(self, **how: Any) -> Report:
        orders, clicks, payments = self.made.values()
        known = together([orders.facts(9_000, deleted=2_100), clicks.facts(), payments.facts()])
        return read_report(
            self.config,
            **{
                "kafka": Answering(known),
                "now": lambda: self.now_ms / 1000,
                "proofs": self._proof,
                **how,
            },
        )

    def _proof(self, pipeline: Pipeline) -> RecordState | None:
        if pipeline.name == "payments":
            return None
        entry = self.made[pipeline.name].entry
        assert entry is not None
        place, at_ms = Place(entry.sequence - 20, entry.commit, entry.sequence - 20), self.now_ms
        first = Proved(
            pipeline=pipeline.name,
            table=str(pipeline.target.table),
            first=1,
            last=place,
            position=entry.position.as_nested(),
            at_ms=at_ms - 20 * MINUTE,
            full_entry=place.sequence,
            full_ms=at_ms - 20 * MINUTE,
        )
        return RecordState(first)
