"""What may delete the next record, as a table of values."""

from __future__ import annotations

import pytest

from rivermouth.protocol.kafka_facts import Outlook, Retention, TimeLeft, time_left

pytestmark = pytest.mark.unit

NOW_MS = 1_000_000.0
DAY_MS = 86_400_000
NO_LIMIT = "retention.ms -1 and retention.bytes -1: no limit"
BY_AGE = "the record's timestamp plus retention.ms 60,000"
BY_AGE += "; Kafka deletes whole segments, so not before"
OR_SIZE = "; retention.bytes 1,024 may delete it sooner"
OR_COMPACTED = "; compaction may remove an older record of a key sooner"


@pytest.mark.parametrize(
    ("retention", "record_ms", "expected"),
    [
        (("delete", 60_000, None), 990_000, (Outlook.BY_AGE, BY_AGE, 50.0, 990_000)),
        (("delete", 60_000, None), 940_001, (Outlook.BY_AGE, BY_AGE, 0.001, 940_001)),
        (("delete", 60_000, None), 940_000, (Outlook.BY_AGE, BY_AGE, 0.0, 940_000)),
        (("delete", 60_000, None), 0, (Outlook.BY_AGE, BY_AGE, 0.0, 0)),
        (("delete", 60_000, 1024), 990_000, (Outlook.BY_AGE_OR_SIZE, BY_AGE + OR_SIZE, 50.0)),
        (("compact,delete", 60_000, None), 990_000, (Outlook.BY_AGE, BY_AGE + OR_COMPACTED, 50.0)),
        (
            ("delete", None, 1024),
            990_000,
            (Outlook.BY_SIZE, "retention.bytes 1,024 deletes by size, retention.ms -1 not by age"),
        ),
        (("delete", None, None), 990_000, (Outlook.KEPT, NO_LIMIT)),
        (
            ("compact", 60_000, 1024),
            990_000,
            (Outlook.KEPT, "cleanup.policy compact does not delete by age or size"),
        ),
        (("delete", 60_000, None), -1, (Outlook.UNKNOWN, "the record has no timestamp", None)),
        (("delete", None, None), -1, (Outlook.KEPT, NO_LIMIT, None)),
    ],
)
def test_the_time_left_rests_on_the_timestamp_and_the_settings(
    retention: tuple[str, int | None, int | None],
    record_ms: int,
    expected: tuple[Outlook, str, float | None, int | None],
) -> None:
    outlook, basis, *more = expected
    stamp = record_ms if record_ms >= 0 else None
    seconds = more[0] if more else None
    assert time_left(record_ms, Retention(*retention), NOW_MS) == TimeLeft(
        outlook, basis, seconds, stamp
    )


@pytest.mark.parametrize(
    ("policy", "age_ms", "kept_for"),
    [
        ("delete", DAY_MS, "1 day"),
        ("compact,delete", 7 * DAY_MS, "7 days"),
        ("delete", 3 * DAY_MS // 2, "1 day 12 hours"),
        ("delete", DAY_MS // 2, "12 hours"),
        ("delete", 90_061_001, "1 day 1 hour 1 minute 1 second 1 ms"),
        ("compact", DAY_MS, None),
        ("delete", None, None),
        ("delete", 0, "0 ms"),
        ("delete", 2**63 - 1, "106,751,991,167 days 7 hours 12 minutes 55 seconds 807 ms"),
    ],
)
def test_how_long_a_topic_keeps_a_record(
    policy: str, age_ms: int | None, kept_for: str | None
) -> None:
    assert Retention(policy, age_ms, None).kept_for == kept_for
