"""What accepting changes means: what is known, and what may be lost or doubled. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rivermouth.protocol.changes import Change, Changes, Move
from rivermouth.protocol.entry import Draft, Entry
from rivermouth.protocol.kafka_facts import KafkaFacts


@dataclass(frozen=True)
class ResumePlan:
    """An entry that accepts something, before it is written, and what it means."""

    draft: Draft
    lines: tuple[str, ...] = ()

    @staticmethod
    def of(newest: Entry | None, draft: Draft, kafka: KafkaFacts) -> ResumePlan:
        """The plan of an entry that follows on ``newest``."""
        if newest is None:
            return ResumePlan(draft)
        if draft.changes is None:
            return ResumePlan(draft, tuple(_other_source(newest, draft)))
        return ResumePlan(draft, tuple(consequences(newest, draft, draft.changes, kafka)))

    def as_dict(self) -> dict[str, Any]:
        """The JSON of what would be written."""
        changes = self.draft.changes
        return {
            "sequence": self.draft.sequence,
            "position": self.draft.position.as_nested(),
            "changes": None if changes is None else changes.as_dict(),
            "means": list(self.lines),
        }


def consequences(newest: Entry, draft: Draft, changes: Changes, kafka: KafkaFacts) -> list[str]:
    """What an operator must know before the entry of ``draft`` is written, a line for each fact.

    ``newest`` is the entry that it follows on.
    """
    lines = [
        f"{name} was {before!r} and is {draft.config.get(name)!r}, for records that are read from"
        f" entry {draft.sequence} on; what was read before stays as it is"
        for name, before in changes.settings.items()
    ]
    if changes.cluster:
        lines.append(f"the cluster was {changes.cluster} and is {draft.cluster}")
    for topic, before in changes.topics.items():
        lines.append(f"{topic} was the topic {before} and is {draft.topics.get(topic)}")
    for each in changes.moved:
        lines += _moved(newest, changes, each, kafka)
    if Change.CLUSTER in changes.kinds and not any(each.now is not None for each in changes.moved):
        lines.append("all offsets are taken to mean the same records as before: verify will check")
    return lines


def _other_source(newest: Entry, draft: Draft) -> Iterator[str]:
    """What a table that starts over is read from, where that is another source than before."""
    if newest.cluster != draft.cluster:
        yield f"the cluster was {newest.cluster} and is {draft.cluster}"
    for topic, now in sorted(draft.topics.items()):
        if newest.topics.get(topic, now) != now:
            yield f"{topic} was the topic {newest.topics[topic]} and is {now}"


def _moved(newest: Entry, changes: Changes, move: Move, kafka: KafkaFacts) -> Iterator[str]:
    place, was, now = move.topic_partition, move.was, move.now
    marks = kafka.watermarks.get(place)
    if now is None:
        yield f"{place} stood at {was:,} and is gone; if it comes back, it is read from the start"
    elif was is None:
        yield f"{place} is new and continues at {now:,}"
    elif changes.renews(place.topic):
        yield f"{place} stood at {was:,} and continues at {now:,}"
    else:
        yield (
            f"{place} stood at {was:,}, but its log was cut at {now:,}: {was - now:,} offsets that"
            " were read may hold other records now, which are read; the rows of the old ones stay"
        )
    unread = (newest.ends.get(place) or 0) - (was or 0)
    if unread > 0 and (now is None or changes.renews(place.topic)):
        yield (
            f"{place}: up to {unread:,} offsets after {was or 0:,}, which were there at the last"
            " commit, were never read and may be lost"
        )
    if marks is not None and now is not None and now < marks.high:
        yield (
            f"{place}: {marks.high - now:,} offsets are read from there; records among them that"
            " were read before are read twice"
        )
