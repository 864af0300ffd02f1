"""Ranges compared with what Kafka holds, before anything is read."""

from __future__ import annotations

from collections.abc import Iterable

from rivermouth.config import Config, Secrets
from rivermouth.kafka.asked import check_topics
from rivermouth.operate.topic_facts import ConfiguredKafka
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.reading.asked import apart, check_kept, check_same_source, check_written
from rivermouth.reading.recorded import RecordedRanges

Given = OffsetRange | RecordedRanges
"""A range, or those of a ledger entry, of which cluster and topics are known."""


def plain(given: Iterable[Given]) -> tuple[OffsetRange, ...]:
    """The ranges, in the order given."""
    return tuple(
        one
        for each in given
        for one in (each.ranges if isinstance(each, RecordedRanges) else (each,))
    )


def held(
    config: Config, given: Iterable[Given], secrets: Secrets, *, begins_too: bool = True
) -> tuple[OffsetRange, ...]:
    """The ranges that hold an offset, in order, if they can be read.

    Where not ``begins_too``, their beginnings may be deleted. Kafka is not asked where no range
    holds an offset. Raises what ``read`` raises.
    """
    given = tuple(given)
    ranges = apart(plain(given))
    if not ranges:
        return ()
    topics = {each.topic for each in ranges}
    check_topics(sorted(topics))
    facts = ConfiguredKafka(config, secrets).facts(sorted(topics))
    for each in given:
        if isinstance(each, RecordedRanges) and any(one.span for one in each.ranges):
            ids = {one.topic: each.topics[one.topic] for one in each.ranges if one.span}
            check_same_source(each.cluster, ids.items(), facts)
    check_written(ranges, facts)
    if begins_too:
        check_kept(ranges, facts)
    return ranges
