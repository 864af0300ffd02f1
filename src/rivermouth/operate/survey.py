"""Every pipeline as an operator looks at it: the ledgers are read first, and Kafka second.

So a lag can only come out too large by what has just been written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from rivermouth.config import OFFSETS_TABLE, Config, Pipeline, Secrets
from rivermouth.errors import RivermouthError
from rivermouth.kafka.facts import AskTopic
from rivermouth.operate.facts import (
    answers,
    assessed,
    connected,
    ledger_or_fault,
    newest_of,
    or_fault,
)
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.snapshot import LedgerSnapshot
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.lake.offsets import LakeOffsets
from rivermouth.warehouse.ports import LedgerStore

T = TypeVar("T")
Stores = Callable[[Pipeline], LedgerStore]
"""Where the ledger of a pipeline is read."""
_AT_ONCE = 16
"""So many pipelines are looked at, at once: most of the time is that of a store to answer."""
_FRESH_S = 2.0
"""Rows that are as old as that count: the logs are read after them, and tell what came since."""


@dataclass(frozen=True)
class Surveyed:
    """A pipeline with the topics that it has now, its ledger, and what Kafka says of it.

    An error stands in the place of what could not be read.
    """

    pipeline: Pipeline
    store: LedgerStore
    ledger: LedgerSnapshot | RivermouthError
    facts: KafkaFacts | RivermouthError
    kafka: AskTopic | RivermouthError

    def assessed(self, now_s: float) -> Assessment:
        """What a run would do now, see ``facts.assessed``. Raises what stands there, too."""
        if isinstance(self.ledger, RivermouthError):
            raise self.ledger
        return assessed(self.pipeline, self.store, self.ledger, self.facts, self.kafka, now_s)


def survey(
    config: Config, kafka: AskTopic | None, secrets: Secrets, stores: Stores
) -> list[Surveyed]:
    """All pipelines, in the order of the file. ``kafka``: None: the configured broker."""
    pipelines = [*config.pipelines.values()]
    lake = Lake.if_any(config, secrets)
    ledgers = each_of(pipelines, lambda each: ledger_or_fault(stores(each), each), lake)
    asked = or_fault(lambda: connected(config, secrets)) if kafka is None else kafka
    found = answers(pipelines, asked, newest_of(ledgers))
    return [
        Surveyed(answer.pipeline, stores(each), ledgers[each.name], answer.facts, asked)
        for each in pipelines
        for answer in (found[each.name],)
    ]


def each_of(
    pipelines: Sequence[Pipeline], look: Callable[[Pipeline], T], lake: Lake | None
) -> dict[str, T]:
    """What is seen of each, by its name. Several are looked at, at once, where a store or a catalog
    (``lake`` is None) lets each wait; over files of this machine threads would only cost time.
    """
    names = (each.name for each in pipelines)
    if lake is not None and lake.folder is not None:
        return dict(zip(names, map(look, pipelines), strict=True))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return dict(zip(names, threads.map(look, pipelines), strict=True))


def stores_in(lake: Lake, config: Config) -> Stores:
    """Where the ledgers are: each log is read once, and the offsets table for all of them."""
    offsets = LakeOffsets(lake.store(OFFSETS_TABLE), fresh_s=_FRESH_S)
    logs = {
        each.name: DeltaLog(lake.store(each.target.table), files=True)
        for each in config.pipelines.values()
    }
    found = {name: LedgerStore(log, offsets) for name, log in logs.items()}
    return lambda pipeline: found[pipeline.name]
