"""Assessing a pipeline from outside, while a run may commit to its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rivermouth.config import Pipeline
from rivermouth.errors import RivermouthError, as_ours
from rivermouth.kafka.facts import AskKafka, assess_by, facts_of
from rivermouth.operate.topic_facts import Fault
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.warehouse.others import Others
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.reading import read_ledger, read_on, with_others

Judge = Callable[[LedgerSnapshot], Assessment]
"""What a run would do with a ledger, see ``assess``; asks Kafka, or not."""
_LOOKS = 5
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
    for _ in range(_LOOKS):
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
    answer: KafkaFacts | Fault,
    kafka: AskKafka,
    now_s: float,
) -> Assessment:
    """What a run would do now; ``answer`` is what Kafka said after the ledger was read.

    Kafka is asked again where a run has committed meanwhile. Where it gave no answer, its guards
    are left out. Raises what ``look`` does, and SourceError.
    """
    if pipeline.source.topics.pattern:  # the ledger was read before its topics were known
        ledger = with_others(ledger, pipeline, Others(store.log, pipeline.ledger_name))
    if isinstance(answer, Fault):
        return look(store, pipeline, ledger, lambda each: assess(each, None, pipeline, now_s))

    known = ledger

    def judge(each: LedgerSnapshot) -> Assessment:
        facts = answer if each is known else facts_of(kafka, pipeline)
        return assess_by(kafka, facts, each, pipeline, now_s)

    return look(store, pipeline, ledger, judge)
