"""What is known of a pipeline from outside, while a run may commit to its table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from rivermouth.config import Config, Pipeline, Secrets, TableName, Topics
from rivermouth.config.platforms import LOCAL
from rivermouth.config.registry import FILES, LANDINGS, SEND
from rivermouth.errors import (
    LedgerBroken,
    LogUnreadable,
    RivermouthError,
    SetupError,
    SourceError,
    as_ours,
)
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import AskKafka, assess_by, facts_of, with_topics
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.protocol.starts import start_is_over
from rivermouth.protocol.ways import ELSEWHERE, UNPINNED, Definition, Way, way_into, way_of
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.folder.offsets import folder_ledger
from rivermouth.warehouse.ledger import Others, read_ledger, read_on, with_others
from rivermouth.warehouse.ports import LedgerStore

TIMEOUT_S = 5.0
"""So long may a question to the broker take where an operator waits."""

_NOTHING = KafkaFacts("", {}, {})
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What Kafka says for a pipeline, which has the topics that its pattern matches now."""

    pipeline: Pipeline
    facts: KafkaFacts | RivermouthError


def connected(config: Config, secrets: Secrets) -> Kafka:
    """The configured broker. Raises SourceError or SetupError for options that no client takes."""
    return Kafka(config.kafka.revealed(secrets), TIMEOUT_S)


def answers(
    pipelines: Iterable[Pipeline],
    kafka: AskKafka | RivermouthError,
    newest: Mapping[str, Entry | None],
) -> dict[str, Answer]:
    """Kafka's answer for each pipeline, by its name. ``newest`` are their entries, read before.

    An error in place of ``kafka`` is the answer for all of them.
    """
    if isinstance(kafka, RivermouthError):
        return {each.name: Answer(each, kafka) for each in pipelines}
    known = [*pipelines]
    names: frozenset[str] | RivermouthError = frozenset()
    if any(each.source.topics.pattern for each in known):
        names = or_fault(kafka.names)
    matched = {each.name: _matched(each, kafka, newest.get(each.name), names) for each in known}
    whole = [each.pipeline for each in matched.values() if isinstance(each.facts, KafkaFacts)]
    facts = _facts(whole, kafka)
    return {
        name: replace(each, facts=facts[name]) if name in facts else each
        for name, each in matched.items()
    }


def or_fault(question: Callable[[], T]) -> T | RivermouthError:
    """The answer of a broker, or why there is none."""
    try:
        return question()
    except (SourceError, SetupError) as fault:
        return fault


def _matched(
    pipeline: Pipeline,
    kafka: AskKafka,
    newest: Entry | None,
    names: frozenset[str] | RivermouthError,
) -> Answer:
    if isinstance(names, RivermouthError):
        # A broker that is away is not asked once more for each of the others.
        away = names.code == "RM301" or bool(pipeline.source.topics.pattern)
        return Answer(pipeline, names if away else _NOTHING)
    found = or_fault(lambda: with_topics(kafka, pipeline, newest, names))
    if isinstance(found, RivermouthError):
        return Answer(pipeline, found)
    return Answer(found, _NOTHING)


def _facts(
    pipelines: Iterable[Pipeline], kafka: AskKafka
) -> dict[str, KafkaFacts | RivermouthError]:
    wanted = {each.name: each.source.topics for each in pipelines}
    if not wanted:
        return {}
    every = sorted({topic for topics in wanted.values() for topic in topics})
    facts = or_fault(lambda: kafka.facts(every))
    if isinstance(facts, KafkaFacts):
        return {name: facts.of(topics) for name, topics in wanted.items()}
    if facts.code == "RM301" or len(wanted) == 1:
        return dict.fromkeys(wanted, facts)
    return {name: _facts_of(topics, kafka) for name, topics in wanted.items()}


def _facts_of(topics: Topics, kafka: AskKafka) -> KafkaFacts | RivermouthError:
    return or_fault(lambda: kafka.facts(topics).of(topics))


Judge = Callable[[LedgerSnapshot], Assessment]
"""What a run would do with a ledger, see ``assess``; asks Kafka, or not."""
_TIMES = 5
"""How often it is read on while runs commit."""


def look(
    store: LedgerStore, pipeline: Pipeline, ledger: LedgerSnapshot, judge: Judge
) -> Assessment:
    """What a run would do now; ``ledger`` is as it was read first.

    A run may commit while we read: then offsets table and ``txn`` are ahead of what was read of
    the log. So a halt is believed only where nothing was committed meanwhile; else what was
    committed is read, too. Raises what ``judge`` does, LogUnreadable, LedgerBroken, and
    OffsetsUnreadable.
    """
    found = judge(ledger)
    for _ in range(_TIMES):
        newer = read_on(store, pipeline, found.ledger) if found.halt is not None else None
        if newer is None:
            return found
        found = judge(newer)
    return found


def ledger_or_fault(store: LedgerStore, pipeline: Pipeline) -> LedgerSnapshot | RivermouthError:
    """The ledger of a pipeline, or why it cannot be read."""
    try:
        return read_ledger(store, pipeline)
    except Exception as fault:
        return as_ours(fault, pipeline.name)


def newest_of(ledgers: Mapping[str, LedgerSnapshot | RivermouthError]) -> dict[str, Entry | None]:
    """The newest entry of each ledger; None where there is none, or it cannot be read."""
    return {
        name: each.newest if isinstance(each, LedgerSnapshot) else None
        for name, each in ledgers.items()
    }


def assessed(
    pipeline: Pipeline,
    store: LedgerStore,
    ledger: LedgerSnapshot,
    answer: KafkaFacts | RivermouthError,
    kafka: AskKafka | RivermouthError,
    now_s: float,
) -> Assessment:
    """What a run would do now; ``answer`` is what Kafka said after the ledger was read.

    Kafka is asked again where a run has committed meanwhile. Where it gave no answer, its guards
    are left out. Raises what ``look`` does, and SourceError.
    """
    if pipeline.source.topics.pattern:  # the ledger was read before its topics were known
        ledger = with_others(ledger, pipeline, Others(store.log, pipeline.ledger_name))
    if isinstance(answer, RivermouthError) or isinstance(kafka, RivermouthError):
        return look(store, pipeline, ledger, lambda each: assess(each, None, pipeline, now_s))

    first = ledger

    def judge(each: LedgerSnapshot) -> Assessment:
        facts = answer if each is first else facts_of(kafka, pipeline)
        return assess_by(kafka, facts, each, pipeline, now_s)

    return look(store, pipeline, ledger, judge)


def idle_starts(config: Config) -> list[str]:
    """The pipelines whose ``start`` has no effect any more.

    Their ledgers tell it, as far as they can be read: none where the tables are in a catalog.
    """
    if not isinstance(config.warehouse, Path):
        return []
    found: list[str] = []
    for each in config.pipelines.values():
        if "start" in each.source.model_fields_set:
            ledger = ledger_or_fault(folder_ledger(config.warehouse, each), each)
            if isinstance(ledger, LedgerSnapshot) and start_is_over(each, ledger.newest):
                found.append(each.name)
    return found


_PINS = "PYSPARK_PIN_THREAD"


def way_now(config: Config, pipeline: Pipeline) -> Way | None:
    """That, on one machine; None where the mode leaves no choice.

    A table that does not exist or cannot be read says nothing.
    """
    shape = pipeline.shape
    if LANDINGS.first(LOCAL, keyed=shape.keyed, sends=shape.sends).name not in (FILES, SEND):
        return None
    table = pipeline.target.table
    others = [each.name for each in config.writers(table) if each.name != pipeline.name]
    if not isinstance(config.warehouse, Path):
        return way_of(pipeline, others, ELSEWHERE)
    unpinned = os.environ.get(_PINS, "true").lower() != "true"  # as PySpark reads it
    known, folder = way_of(pipeline, others, UNPINNED if unpinned else ""), config.warehouse
    if known.reason:
        return known
    bad = None if shape.sends else _definition(folder, table.quarantine)
    return way_into(known, _definition(folder, table), bad)


def _definition(folder: Path, table: TableName) -> Definition | None:
    with suppress(LogUnreadable, LedgerBroken):
        return DeltaLog.of_folder(table.path(folder)).definition()
    return None
