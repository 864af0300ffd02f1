"""Drafts of the entry that follows on the newest one. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.config import Pipeline
from rivermouth.protocol.entry import Accepted, Draft
from rivermouth.protocol.history import History
from rivermouth.protocol.kafka_facts import KafkaFacts, is_told
from rivermouth.protocol.offsets import OffsetRange, Position


def next_draft(
    history: History,
    table: str,
    pipeline: Pipeline,
    kafka: KafkaFacts,
    ranges: tuple[OffsetRange, ...],
    lost: tuple[OffsetRange, ...] = (),
) -> Draft:
    """The entry that follows on the newest one and covers ``ranges``.

    Raises ValueError where a range does not start at the position.
    """
    position = history.position.advance(ranges)
    return _draft(history, table, pipeline, kafka, history.sequence + 1, ranges, position, lost)


def accepting_draft(
    history: History,
    table: str,
    pipeline: Pipeline,
    kafka: KafkaFacts,
    sequence: int,
    position: Position,
    accepted: Accepted,
) -> Draft:
    """The entry that records what an operator accepted, and goes on at ``position``."""
    ranges = here(position)
    return _draft(history, table, pipeline, kafka, sequence, ranges, position, (), accepted)


def here(position: Position) -> tuple[OffsetRange, ...]:
    """Empty ranges at ``position``: by them the offsets table has the entry, too."""
    return tuple(OffsetRange(each, at, at) for each, at in position.offsets.items())


def _draft(
    history: History,
    table: str,
    pipeline: Pipeline,
    kafka: KafkaFacts,
    sequence: int,
    ranges: tuple[OffsetRange, ...],
    position: Position,
    lost: tuple[OffsetRange, ...],
    accepts: Accepted | None = None,
) -> Draft:
    newest = history.newest
    epochs = {**(newest.epochs if newest else {}), **kafka.epochs}
    return Draft(
        pipeline=history.pipeline,
        sequence=sequence,
        cluster=kafka.cluster,
        table=table,
        topics=_topics(newest.topics if newest else {}, kafka.topics),
        ranges=tuple(sorted(ranges)),
        position=position,
        config=pipeline.identity,
        columns=tuple((each.name, each.type) for each in pipeline.columns),
        lost=lost,
        accepts=accepts,
        epochs={each: epochs[each] for each in position if each in epochs},
        ends=Position({each: end.offset for each, end in kafka.ends.items()}),
    )


def _topics(recorded: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The topic ids to record.

    A topic that was taken out of the configuration keeps its id: it may come back. An id that was
    told once stays where a broker tells none, and one that is told later is taken.
    """
    new = {topic: each for topic, each in told.items() if topic not in recorded or is_told(each)}
    return {**recorded, **new}
