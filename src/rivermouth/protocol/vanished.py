"""Topics that the pattern of a source matched once, and that Kafka no longer has. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rivermouth.config import Pipeline
from rivermouth.errors import PartitionGone
from rivermouth.protocol.entry import Entry, topics_begun
from rivermouth.protocol.offsets import TopicPartition
from rivermouth.protocol.rollback import accepting

_NAMED = 3


def vanished(pipeline: Pipeline, newest: Entry | None) -> tuple[str, ...]:
    """The topics of the ledger that match the pattern, and that it does not find any more.

    The pipeline is one whose pattern was asked for, see ``kafka.facts.with_topics``. A topic that
    is named does not vanish: where it is missing, Kafka's answer says so.
    """
    topics = pipeline.source.topics
    if not topics.pattern:
        return ()
    return tuple(each for each in sorted(topics_begun(newest) - {*topics}) if topics.take(each))


def unread(pipeline: Pipeline, newest: Entry | None) -> dict[TopicPartition, int]:
    """How many offsets of vanished topics were never read, as far as the newest entry knows."""
    gone = vanished(pipeline, newest)
    if newest is None or not gone:
        return {}
    stood = newest.position.offsets
    left = {each: end - stood.get(each, end) for each, end in newest.ends.offsets.items()}
    return {each: n for each, n in left.items() if n > 0 and each.topic in gone}


def check_vanished(pipeline: Pipeline, newest: Entry | None) -> None:
    """Halt where a topic vanished that was not read to its end."""
    left = unread(pipeline, newest)
    if left:
        raise PartitionGone(
            "a topic of the pattern is gone, and records of it were never read",
            where=f"{pipeline.name} {next(iter(left))}",
            expected="each topic until all of it was read",
            found="; ".join(f"{each} had {n:,} offsets more" for each, n in left.items()),
            remedy=f"If it is gone for good: {accepting(pipeline.name, 'partitions')}",
        )


def shown(topics: Sequence[str]) -> str:
    """``no longer in Kafka, read as far as the ledger knew: a, b, c and 2 more``."""
    more = f" and {len(topics) - _NAMED} more" if len(topics) > _NAMED else ""
    return f"no longer in Kafka, read as far as the ledger knew: {', '.join(topics[:_NAMED])}{more}"
