"""Ranges from Kafka, between two times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rivermouth.config import Config, Secrets, unresolved
from rivermouth.errors import RangesRefused
from rivermouth.kafka.asked import check_topics, record_time
from rivermouth.operate.topic_facts import ConfiguredKafka
from rivermouth.protocol.offsets import OffsetRange, TopicPartition, Watermarks

Found = Mapping[TopicPartition, int | None]
"""The offset of the first record of each partition at a time, or after it; None: there is none."""


def ranges_between(
    config: Config,
    topic: str,
    begin: datetime,
    end: datetime | None = None,
    *,
    secrets: Secrets = unresolved,
) -> tuple[OffsetRange, ...]:
    """From the first record at ``begin`` or after it to the first at ``end`` or after it.

    One range for each partition of the topic, in order; an empty one where no record is between.
    Without ``end``, or where no record is that young, a range ends at the last stable offset: where
    a ``read_committed`` reader ends now. The times are those of the records, and have a zone. Where
    they are not in order in a partition, a range also holds records of other times. What retention
    has deleted is in no range: nobody can tell which times it had.

    Raises RangesRefused for a time without a zone or before 1970, for an ``end`` before ``begin``,
    and for a name that no topic can have; TopicMissing, and other errors of Kafka as SourceError.
    """
    check_topics([topic])
    record_time(begin)
    if end is not None and record_time(end) < begin:
        found = f"{begin.isoformat()} to {end.isoformat()}"
        raise RangesRefused("the end is before the begin", found=found)
    kafka = ConfiguredKafka(config, secrets)
    marks = kafka.facts([topic]).watermarks
    begins = kafka.offsets_at(dict.fromkeys(marks, begin))
    # Later than the begins: what is deleted in between moves an end forward, never a begin.
    ends = kafka.offsets_at(dict.fromkeys(marks, end)) if end is not None else {}
    return spans(marks, begins, ends)


def spans(
    marks: Mapping[TopicPartition, Watermarks], begins: Found, ends: Found
) -> tuple[OffsetRange, ...]:
    """The ranges of the partitions in ``marks``; none ends after the last stable offset."""
    return tuple(
        OffsetRange(each, _offset(begins.get(each), mark), _offset(ends.get(each), mark))
        for each, mark in sorted(marks.items())
    )


def _offset(found: int | None, mark: Watermarks) -> int:
    # What an open transaction holds back may not be read yet.
    return mark.high if found is None else min(found, mark.high)
