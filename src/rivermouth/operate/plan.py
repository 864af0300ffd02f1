"""What the next run would do with each pipeline, by the code that does it. Writes nothing. No JVM.

What comes into the topics between the plan and the run is read by the run, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rivermouth.config import Config, Pipeline, Secrets, unresolved
from rivermouth.errors import Halt, RivermouthError, as_ours
from rivermouth.kafka.facts import AskTopic
from rivermouth.operate.facts import way_now
from rivermouth.operate.survey import Stores, Surveyed, stores_in, survey
from rivermouth.protocol.assess import Assessment, State
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import Way
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import Lake
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.growth import growth, writable
from rivermouth.warehouse.tables import adding, creating

FAILS = "fails"
"""A run would end with an error that is no guard's: the reason tells it."""


@dataclass(frozen=True)
class PipelinePlan:
    """What the next run would do with one pipeline.

    ``state`` is ``new``, ``resumes``, ``halts`` or ``fails``; for the last two ``error`` says why,
    and nothing is read. ``statements`` are what is done to the table first, as Spark would have it.
    ``opening`` is what the first entry is for, if one is due: ``discovery``, ``loss`` or
    ``heartbeat``. ``ranges`` are the offsets that would be read, of the partitions that have any;
    of ``lost`` ones Kafka has deleted the records. ``batches`` is how many there are at least.
    """

    name: str
    table: str
    state: str
    error: RivermouthError | None = None
    statements: tuple[str, ...] = ()
    opening: str | None = None
    ranges: tuple[OffsetRange, ...] = ()
    lost: tuple[OffsetRange, ...] = ()
    batches: int = 0
    way: Way | None = None

    @property
    def offsets(self) -> int:
        """How many would be read: an upper bound of the records."""
        return sum(each.span for each in self.ranges)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object of one pipeline."""
        return {
            "name": self.name,
            "table": self.table,
            "state": self.state,
            "error": None if self.error is None else self.error.as_dict(),
            "statements": [*self.statements],
            "opening": self.opening,
            "offsets": self.offsets,
            "batches": self.batches,
            "ranges": [each.as_dict() for each in self.ranges],
            "lost": [each.as_dict() for each in self.lost],
            "landing": self.way.as_dict() if self.way is not None else None,
        }


@dataclass(frozen=True)
class RunPlan:
    """What the next run would do, in the order of the file."""

    pipelines: Sequence[PipelinePlan]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of ``rivermouth plan --json``."""
        return {"pipelines": [each.as_dict() for each in self.pipelines]}

    @property
    def errors(self) -> list[RivermouthError]:
        """What would end pipelines."""
        return [each.error for each in self.pipelines if each.error is not None]


def plan(
    config: Config,
    kafka: AskTopic | None = None,
    now: Callable[[], float] = time.time,
    secrets: Secrets = unresolved,
    stores: Stores | None = None,
) -> RunPlan:
    """What ``rivermouth run`` would do with every pipeline; arguments as for ``status``.

    Never raises for what a pipeline is in. Raises ConfigError for a catalog.
    """
    lake = Lake.of(config, secrets)
    surveyed = survey(config, kafka, secrets, stores or stores_in(lake, config))
    return RunPlan([_planned(each, lake, config, now()) for each in surveyed])


def _planned(each: Surveyed, lake: Lake, config: Config, now_s: float) -> PipelinePlan:
    pipeline = each.pipeline
    found = PipelinePlan(pipeline.name, str(pipeline.target.table), FAILS)
    try:
        if isinstance(each.facts, RivermouthError):
            raise each.facts
        found = replace(found, statements=_statements(each, lake))
        assessment = each.assessed(now_s)
        if assessment.halt is not None:
            raise assessment.halt
        way = way_now(pipeline, lake, each.store.log)
        return replace(_reading(found, pipeline, assessment, each.facts), way=way)
    except Exception as fault:  # a defect of ours is one pipeline's, too
        error = as_ours(fault, pipeline.name)
        state = State.HALTS.value if isinstance(error, Halt) else FAILS
        return replace(found, state=state, error=error)


def _statements(each: Surveyed, lake: Lake) -> tuple[str, ...]:
    """What is done to the table before the first batch. Raises SchemaDiffers and StoreRefused."""
    table, log = each.pipeline.target.table, each.store.log
    address = Address(path=lake.address(table))
    there = log.definition() if isinstance(log, DeltaLog) else None
    if there is None:
        return (creating(each.pipeline, address),)
    new = growth(each.pipeline, address, there.schema, each.store)
    writable(each.pipeline, there, lake.store(table))
    return (adding(address, new),) if new else ()


def _reading(
    found: PipelinePlan, pipeline: Pipeline, assessment: Assessment, facts: KafkaFacts
) -> PipelinePlan:
    starts = assessment.starts.offsets
    ends = {place: max(marks.high, starts[place]) for place, marks in facts.watermarks.items()}
    ranges = tuple(OffsetRange(each, starts[each], ends[each]) for each in sorted(starts))
    waiting = sum(each.span for each in ranges)
    return replace(
        found,
        state=assessment.state.value,
        opening=None if assessment.opening is None else assessment.opening.purpose.value,
        ranges=tuple(each for each in ranges if each.span),
        lost=assessment.lost,
        batches=-(-waiting // pipeline.source.max_offsets_per_trigger),
    )
