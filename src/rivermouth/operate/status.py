"""Where every pipeline stands: from the newest commits of the tables and one look at Kafka.

No JVM, no consumer group, no full read of a log. The tables are read first and Kafka
second, so that a lag can only come out too large by what has just been written. What is
not known is None, never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from rivermouth.config import Config, OnDataLoss, Pipeline, Secrets, unresolved
from rivermouth.errors import Halt, LedgerTrimmed, SetupError, SourceError
from rivermouth.kafka.client import Kafka
from rivermouth.protocol.entry import app_id
from rivermouth.protocol.guards import check_identity
from rivermouth.protocol.history import Chain
from rivermouth.protocol.planning import KafkaFacts, behind, start_positions
from rivermouth.warehouse.folder.log import FolderLog
from rivermouth.warehouse.folder.recent_commits import LOOK_BACK, newest_record_ms, read_tail

_TIMEOUT_S = 5.0

AskKafka = Callable[[Iterable[str]], KafkaFacts]
Fault = SourceError | SetupError


class State(Enum):
    """What a pipeline is in."""

    NEW = "NEW"
    """Nothing has been committed yet."""
    OK = "OK"
    """Caught up with its topics."""
    BEHIND = "BEHIND"
    BLOCKED = "BLOCKED"
    """A guard would halt the next run; the reason is its text."""
    UNKNOWN = "UNKNOWN"
    """Kafka or the log could not be read; the reason says why."""


@dataclass(frozen=True)
class PipelineStatus:
    """One pipeline. ``position`` is the next offset to read, by topic and partition.

    ``lag_messages`` is the offset span between the position and the last stable offset, an
    upper bound of the records. ``lag_seconds`` is the age of the newest committed record:
    the greatest ``_kafka.timestamp`` in the statistics of the files that the newest entry
    added, else the time of that commit; 0 when caught up. ``held_back`` are offsets behind
    open transactions, in no lag: nobody may read them before these end.
    """

    name: str
    state: State
    table: str
    reason: str | None = None
    sequence: int | None = None
    table_version: int | None = None
    position: Mapping[str, Mapping[str, int]] | None = None
    lag_messages: int | None = None
    lag_seconds: float | None = None
    held_back: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of one pipeline."""
        return {
            "name": self.name,
            "state": self.state.value,
            "reason": self.reason,
            "sequence": self.sequence,
            "table": self.table,
            "table_version": self.table_version,
            "position": self.position,
            "lag": {
                "messages": self.lag_messages,
                "seconds": self.lag_seconds,
                "held_back": self.held_back,
            },
        }


@dataclass(frozen=True)
class Status:
    """All pipelines, in the order of the configuration."""

    pipelines: Sequence[PipelineStatus]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth status --json``."""
        return {"pipelines": [each.as_dict() for each in self.pipelines]}


@dataclass(frozen=True)
class _Ledger:
    """The end of a pipeline's ledger, and the status as far as the table tells it."""

    chain: Chain
    status: PipelineStatus
    newest_ms: int | None


def status(
    config: Config,
    kafka: AskKafka | None = None,
    now: Callable[[], float] = time.time,
    secrets: Secrets = unresolved,
) -> Status:
    """The status of every pipeline. Never raises for what a pipeline is in.

    ``kafka`` answers for a set of topics (default: the configured broker, asked at most
    5 s at a time); ``now`` is the clock, in seconds since 1970; ``secrets`` knows what the
    configuration only names.
    """
    ledgers = [_read_ledger(config, each) for each in config.pipelines.values()]
    answers = _answers(config, kafka or partial(_ask, config, secrets))
    return Status(
        [
            _with_kafka(pipeline, ledger, answers[pipeline.name], now)
            for pipeline, ledger in zip(config.pipelines.values(), ledgers, strict=True)
        ]
    )


def _ask(config: Config, secrets: Secrets, topics: Iterable[str]) -> KafkaFacts:
    return Kafka(config.kafka.revealed(secrets), _TIMEOUT_S).facts(topics)


def _read_ledger(config: Config, pipeline: Pipeline) -> _Ledger:
    """Read the log backwards to the newest entry, then forwards through the guards."""
    table = pipeline.target.table
    log = FolderLog(table.path(config.folder))
    chain = Chain(pipeline.name, f"{pipeline.name} {table}")
    found = PipelineStatus(pipeline.name, State.NEW, str(table))
    try:
        tail = read_tail(log, pipeline.name)
        if not tail:
            return _Ledger(chain, found, None)
        found = replace(found, table_version=tail[-1].version)
        recorded = chain.extend(tail)
        if not recorded:
            return _Ledger(chain, _without_entry(log, pipeline, found), None)
        found = replace(
            found, sequence=chain.sequence, position=chain.position.as_nested(), state=State.OK
        )
        if chain.faults:
            raise chain.faults[0]
        check_identity(chain.where, recorded[0].entry, recorded[0].entry.table, pipeline.identity)
        newest_ms = newest_record_ms(log, recorded[0].version) or recorded[0].timestamp_ms
        return _Ledger(chain, found, newest_ms)
    except Halt as halt:
        return _Ledger(chain, replace(found, state=State.BLOCKED, reason=str(halt)), None)


def _without_entry(log: FolderLog, pipeline: Pipeline, found: PipelineStatus) -> PipelineStatus:
    """The status of a table without an entry in sight: new, or its ``txn`` tells otherwise."""
    txn = log.txn_version(app_id(pipeline.name))
    if not txn:
        return found
    trimmed = LedgerTrimmed(
        f"none of the newest {LOOK_BACK} readable commits holds an entry of this pipeline",
        where=pipeline.name,
        expected=f"entry {txn}",
    )
    return replace(found, sequence=txn, state=State.UNKNOWN, reason=str(trimmed))


def _answers(config: Config, ask: AskKafka) -> dict[str, KafkaFacts | Fault]:
    """Kafka's answer for each pipeline: asked once for all, one by one where that fails."""
    wanted = {each.name: each.source.topics for each in config.pipelines.values()}
    try:
        facts = ask(sorted({topic for topics in wanted.values() for topic in topics}))
    except SetupError as fault:  # a secret that cannot be read: nobody was asked
        return dict.fromkeys(wanted, fault)
    except SourceError as fault:
        if fault.code == "RM301" or len(wanted) == 1:
            return dict.fromkeys(wanted, fault)
        return {name: _answer(ask, topics) for name, topics in wanted.items()}
    return {name: _part(facts, topics) for name, topics in wanted.items()}


def _answer(ask: AskKafka, topics: Iterable[str]) -> KafkaFacts | SourceError:
    try:
        return ask(topics)
    except SourceError as fault:
        return fault


def _part(facts: KafkaFacts, topics: Iterable[str]) -> KafkaFacts:
    ours = {topic: facts.topics[topic] for topic in topics}
    marks = {each: marks for each, marks in facts.watermarks.items() if each.topic in ours}
    waiting = {each: offsets for each, offsets in facts.held_back.items() if each.topic in ours}
    return KafkaFacts(facts.cluster, ours, marks, waiting)


def _with_kafka(
    pipeline: Pipeline,
    ledger: _Ledger,
    answer: KafkaFacts | Fault,
    now: Callable[[], float],
) -> PipelineStatus:
    """The whole status: what the table tells, judged by what Kafka says."""
    found = ledger.status
    if found.state in (State.BLOCKED, State.UNKNOWN):
        return found
    if isinstance(answer, Fault):
        return replace(found, state=State.UNKNOWN, reason=str(answer))
    start_of = pipeline.source.start.of
    try:
        starts = start_positions(
            pipeline.name,
            ledger.chain.newest,
            answer,
            lambda each: start_of(each.topic, each.partition),
            record_loss=pipeline.source.on_data_loss is OnDataLoss.RECORD,
        ).position
    except Halt as halt:
        return replace(found, state=State.BLOCKED, reason=str(halt))
    messages = behind(starts, answer.watermarks)
    waiting = sum(answer.held_back.values())
    found = replace(found, held_back=waiting, reason=_waiting(waiting) if waiting else None)
    if found.state is State.NEW:
        return replace(found, lag_messages=messages)
    age = None if ledger.newest_ms is None else round(now() - ledger.newest_ms / 1000, 3)
    return replace(
        found,
        state=State.BEHIND if messages else State.OK,
        lag_messages=messages,
        lag_seconds=(None if age is None else max(0.0, age)) if messages else 0.0,
    )


def _waiting(offsets: int) -> str:
    return f"open transactions hold back {offsets:,} offsets; if they stay, one is hanging"
