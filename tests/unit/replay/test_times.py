"""Ranges between two times, from the offsets that Kafka tells for them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from rivermouth.errors import RangesRefused
from rivermouth.protocol.offsets import OffsetRange, Watermarks
from rivermouth.replay.ranges import ranges_between, spans
from rivermouth.replay.readable import readable
from tests.builders import place, span
from tests.unit.verification.doubles import configured

pytestmark = pytest.mark.unit

MARKS = {place(0): Watermarks(5, 20)}


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        (7, 12, span(7, 12)),
        (7, 7, span(7, 7)),
        (7, None, span(7, 20)),
        (None, None, span(20, 20)),
        (7, 25, span(7, 20)),
        (25, 25, span(20, 20)),
    ],
)
def test_a_range_ends_where_a_reader_does_who_sees_only_what_is_committed(
    begin: int | None, end: int | None, found: OffsetRange
) -> None:
    assert spans(MARKS, {place(0): begin}, {place(0): end}) == (found,)


def test_without_an_end_every_partition_ends_at_the_end_of_its_log() -> None:
    marks = {place(1): Watermarks(0, 4), **MARKS}
    assert spans(marks, {place(0): 6, place(1): None}, {}) == (span(6, 20), span(4, 4, 1))


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (datetime(2026, 11, 23), None),
        (datetime(2026, 11, 23, tzinfo=timezone.utc), datetime(2026, 11, 24)),
        (
            datetime(2026, 11, 23, tzinfo=timezone.utc),
            datetime(2026, 11, 23, 1, tzinfo=timezone(timedelta(hours=2))),
        ),
        (datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=timezone.utc), None),
        (
            datetime(1969, 12, 30, tzinfo=timezone.utc),
            datetime(1969, 12, 31, tzinfo=timezone.utc),
        ),
    ],
    ids=[
        "begin without a zone",
        "end without a zone",
        "the end is before the begin",
        "begin before 1970",
        "begin and end before 1970",
    ],
)
def test_times_that_make_no_sense_are_refused_before_kafka_is_asked(
    begin: datetime, end: datetime | None, tmp_path: Path
) -> None:
    with pytest.raises(RangesRefused):
        ranges_between(configured(tmp_path), "t", begin, end)


@pytest.mark.parametrize("topic", ["", "a b"])
def test_a_topic_that_cannot_exist_is_refused_before_kafka_is_asked(
    topic: str, tmp_path: Path
) -> None:
    config, now = configured(tmp_path), datetime(2026, 11, 23, tzinfo=timezone.utc)
    with pytest.raises(RangesRefused, match="no topic can have that name"):
        ranges_between(config, topic, now)
    with pytest.raises(RangesRefused, match="no topic can have that name"):
        readable(config, [span(0, 4, topic=topic)])
