"""Assessing a pipeline from outside, while a run may commit to its table."""

from __future__ import annotations

from collections.abc import Callable

from rivermouth.config import Pipeline
from rivermouth.protocol.assess import Assessment, assess
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.reading import read_ledger

AskKafka = Callable[[Entry | None], KafkaFacts]
"""The facts about the topics of a pipeline, for the newest entry of its ledger."""
_LOOKS = 5
"""How often a ledger is read while runs commit."""


def look(
    store: LedgerStore, pipeline: Pipeline, kafka: AskKafka | None, now_s: float
) -> Assessment:
    """What a run would do now, see ``assess``; ``kafka`` None: it is not asked.

    A run may commit while we read: then offsets table and ``txn`` are ahead of what was read of
    the log. So a halt is believed only where nothing was committed meanwhile. Raises LogUnreadable,
    OffsetsUnreadable and SourceError.
    """
    left = _LOOKS
    while True:
        left -= 1
        ledger = read_ledger(store, pipeline)
        found = assess(ledger, kafka(ledger.newest) if kafka else None, pipeline, now_s)
        read_to = ledger.history.version
        settled = read_to is None or not [*store.log.commits_after(read_to)]
        if found.halt is None or settled or not left:
            return found
