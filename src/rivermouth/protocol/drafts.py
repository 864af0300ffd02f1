"""Drafts of the entry that follows on the newest one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rivermouth.config import Pipeline
from rivermouth.protocol.entry import Accepted, Changes, Draft, Entry
from rivermouth.protocol.history import History, Left
from rivermouth.protocol.kafka_facts import KafkaFacts, is_told
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition


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
    return replace(_draft(history, table, pipeline, kafka, position, ranges), lost=lost)


def renewed(draft: Draft, newest: Entry | None, kafka: KafkaFacts) -> Draft:
    """The draft with the epochs and ends of logs that Kafka tells by now; all else stays."""
    position = draft.position
    epochs, ends = _epochs(newest, position, kafka), _ends(newest, position, kafka)
    return replace(draft, epochs=epochs, ends=ends)


def accepting_draft(
    history: History,
    table: str,
    pipeline: Pipeline,
    kafka: KafkaFacts,
    sequence: int,
    left: Left,
    accepted: Accepted,
) -> Draft:
    """The entry that records what an operator accepted, and goes on from what that left."""
    if accepted.kind == "reset":  # nothing of the former source is left
        history = History(history.pipeline, history.where)
    draft = _draft(history, table, pipeline, kafka, left.position, here(left.position))
    epochs = {each: left.epochs.get(each, now) for each, now in draft.epochs.items()}
    return replace(
        draft,
        sequence=sequence,
        accepts=accepted,
        accepted=left.accepted,
        epochs=epochs,
        assigned=draft.assigned if history.newest is None else history.newest.assigned,
    )


def changing_draft(
    history: History, table: str, pipeline: Pipeline, kafka: KafkaFacts, changes: Changes
) -> Draft:
    """The entry that records the changes that an operator accepted, and goes on behind them.

    Raises ValueError where a partition does not stand where they say.
    """
    position = changes.applied(history.position)
    draft = _draft(history, table, pipeline, kafka, position, here(position))
    # Epochs of another topic say nothing of this one.
    epochs = {
        each: epoch
        for each, epoch in draft.epochs.items()
        if each in kafka.epochs or not changes.renews(each.topic)
    }
    return replace(
        draft,
        changes=changes,
        accepted=(*draft.accepted, *((each.value, draft.sequence) for each in changes.kinds)),
        epochs=epochs,
        assigned=draft.assigned if history.newest is None else history.newest.assigned,
    )


def still_draft(history: History, newest: Entry, table: str) -> Draft:
    """An entry that follows on ``newest`` and moves no offset. Nothing of Kafka is needed for it.

    It says all that the newest entry does, but for what concerned that commit alone.
    """
    return replace(
        newest.draft,
        sequence=history.sequence + 1,
        table=table,
        ranges=here(newest.position),
        lost=(),
        accepts=None,
        changes=None,
        deletes=(),
        replayed=(),
    )


def here(position: Position) -> tuple[OffsetRange, ...]:
    """Empty ranges at ``position``: by them the offsets table has the entry, too."""
    return tuple(OffsetRange(each, at, at) for each, at in position.offsets.items())


def _draft(
    history: History,
    table: str,
    pipeline: Pipeline,
    kafka: KafkaFacts,
    position: Position,
    ranges: tuple[OffsetRange, ...],
) -> Draft:
    newest = history.newest
    return Draft(
        pipeline=history.pipeline,
        sequence=history.sequence + 1,
        cluster=kafka.cluster,
        table=table,
        topics=_topics(newest.topics if newest else {}, kafka.topics),
        ranges=tuple(sorted(ranges)),
        position=position,
        config=pipeline.identity,
        columns=tuple((each.name, each.type) for each in pipeline.columns),
        decoder=pipeline.decoder,
        metadata=pipeline.source.metadata,
        accepted=newest.accepted if newest else (),
        epochs=_epochs(newest, position, kafka),
        ends=_ends(newest, position, kafka),
        transform=pipeline.made_by,
        explode=pipeline.target.explode,
        assigned=assigned_now(newest, kafka),
    )


def _epochs(
    newest: Entry | None, position: Position, kafka: KafkaFacts
) -> dict[TopicPartition, int]:
    """The leader epochs; of a partition that Kafka tells none of what was known last."""
    known = {**(newest.epochs if newest else {}), **kafka.epochs}
    return {each: known[each] for each in position if each in known}


def _ends(newest: Entry | None, position: Position, kafka: KafkaFacts) -> Position:
    """Where the logs end; of a partition that Kafka was not asked for what was known last."""
    before = newest.ends.offsets if newest is not None else {}
    kept = {each: end for each, end in before.items() if not kafka.tell_of(each)}
    known = {each: end for each, end in kept.items() if each in position}
    return Position({**known, **{each: end.offset for each, end in kafka.ends.items()}})


def assigned_now(newest: Entry | None, kafka: KafkaFacts) -> frozenset[str]:
    """Of which topics only some partitions are read; a topic that was taken out stays as it was."""
    before = newest.assigned if newest is not None else frozenset()
    return frozenset(kafka.only) | {each for each in before if each not in kafka.topics}


def _topics(recorded: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The topic ids to record.

    A topic that was taken out of the configuration keeps its id: it may come back. An id that was
    told once stays where a broker tells none, and one that is told later is taken.
    """
    new = {topic: each for topic, each in now.items() if topic not in recorded or is_told(each)}
    return {**recorded, **new}
