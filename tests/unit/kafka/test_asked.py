"""Topics and times that people ask Kafka for: which of them it cannot be asked for, as tables."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rivermouth.errors import RangesRefused
from rivermouth.kafka.topics import check_topics, record_time, zoned

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
EAST, WEST = (timezone(timedelta(hours=each)) for each in (12, -12))


@pytest.mark.parametrize("at", [AT, EPOCH, EPOCH.astimezone(WEST), LAST])
def test_a_time_with_its_zone_since_1970_is_asked_for(at: datetime) -> None:
    assert record_time(at) is at
    assert zoned(at) is at


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (AT.replace(tzinfo=None), "a time without a zone; found 2026-11-23T00:00:00. Add one"),
        (EPOCH - timedelta(milliseconds=1), "before 1970"),
        (EPOCH.replace(tzinfo=EAST), "before 1970"),
        (datetime.min.replace(tzinfo=EAST), "before 1970"),
        (LAST.replace(tzinfo=WEST), "after the year 9999 in UTC"),
    ],
)
def test_a_time_that_kafka_takes_for_something_else_is_refused(at: datetime, said: str) -> None:
    with pytest.raises(RangesRefused) as refused:
        record_time(at)
    assert said in str(refused.value)
    assert refused.value.found == at.isoformat()


def test_a_time_that_kafka_is_not_asked_for_may_be_before_1970() -> None:
    assert zoned(EPOCH - timedelta(days=1)) == EPOCH - timedelta(days=1)
    with pytest.raises(RangesRefused, match="without a zone"):
        zoned(datetime.min)


@pytest.mark.parametrize("name", ["orders", "a.b_c-D", "__consumer_offsets", "..a", "x" * 249])
def test_a_name_that_a_topic_can_have_is_asked_for(name: str) -> None:
    check_topics(["t", name])


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", ".", "..", "a\n", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused(name: str) -> None:
    with pytest.raises(RangesRefused) as refused:
        check_topics(["t", name])
    said = str(refused.value)
    assert said.startswith("RM704 topic: no topic can have that name; expected a name of letters, ")
    assert f'; found "{name[:2]}' in said.replace("\\n", "\n")
