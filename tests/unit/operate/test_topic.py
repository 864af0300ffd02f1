"""What is told of a topic, from the ledgers of its readers and the answers of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Pipeline, Start
from rivermouth.errors import (
    ConfigError,
    KafkaRefused,
    KafkaUnsettled,
    RangesRefused,
    TopicMissing,
)
from rivermouth.operate.topic import topic
from rivermouth.operate.topic_report import Reader, Reading, TopicReport
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import NOTHING_WAITS, KafkaFacts, Outlook, Retention
from rivermouth.protocol.offsets import Position, TopicPartition, Watermarks
from rivermouth.run.tables import topic_table as render
from rivermouth.warehouse.ports import LedgerStore
from tests.memory import MemoryLog, MemoryOffsets, MemoryTable
from tests.unit.operate.doubles import Answering, configured

pytestmark = pytest.mark.unit

NOW = datetime(2026, 11, 8, tzinfo=timezone.utc)
STAMP_MS = int(datetime(2026, 11, 2, tzinfo=timezone.utc).timestamp() * 1000)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MARKS = {T0: Watermarks(5, 20), T1: Watermarks(0, 9)}
FACTS = KafkaFacts("K", {"t": "T"}, MARKS, {T0: 4})
UNSETTLED = KafkaUnsettled("the cluster cannot answer yet")
FORBIDDEN = KafkaRefused("the broker refused", found="Topic authorization failed")


def a_broker(answer: KafkaFacts = FACTS, **settings: Any) -> Answering:
    return Answering(answer, stamp_ms=STAMP_MS, **settings)


def stores(**positions: Position) -> Callable[[Pipeline], LedgerStore]:
    """Where these pipelines have read so far; no other pipeline has a table."""

    def store(pipeline: Pipeline) -> LedgerStore:
        table = MemoryTable(table_id=pipeline.name)
        if pipeline.name in positions:
            table.commit(entry(pipeline, positions[pipeline.name]))
        else:
            table.commits.clear()
        return LedgerStore(MemoryLog(table), MemoryOffsets())

    return store


def entry(pipeline: Pipeline, position: Position) -> Entry:
    return Entry(
        pipeline=pipeline.name,
        sequence=1,
        commit="c",
        cluster="K",
        table=pipeline.name,
        topics={"t": "T"},
        ranges=(),
        position=position,
        base=0,
        config=pipeline.identity,
    )


def report_of(
    folder: Path, kafka: Answering, position: Mapping[TopicPartition, int] | None, **more: Any
) -> TopicReport:
    """The topic ``t``, which the pipeline ``p`` has read up to ``position``; None: not yet."""
    config = configured(folder, p="t")
    read = {} if position is None else {"p": Position(position)}
    return topic(config, "t", kafka=kafka, now=NOW.timestamp, stores=stores(**read), **more)


def only(report: TopicReport) -> tuple[Reader, Reading, Reading]:
    [reader] = report.readers
    first, second = reader.partitions
    return reader, first, second


def test_partitions_are_told_with_where_they_are_kept_and_their_offsets(tmp_path: Path) -> None:
    report = report_of(tmp_path, a_broker(), {T0: 12, T1: 9}, at=NOW)
    assert [each.as_dict() for each in report.partitions] == [
        {
            "partition": 0,
            "leader": 1,
            "replicas": [1, 2],
            "in_sync": [1],
            "earliest": 5,
            "last_stable": 20,
            "latest": 24,
            "at": 7,
        },
        {
            "partition": 1,
            "leader": 2,
            "replicas": [2, 1],
            "in_sync": [2, 1],
            "earliest": 0,
            "last_stable": 9,
            "latest": 9,
            "at": 7,
        },
    ]
    facts = report.as_dict()
    assert facts["sums"] == {
        "partitions": 2,
        "records_at_most": 28,
        "held_back": 4,
        "lag": {"p": 8},
    }
    assert (facts["cluster"], facts["id"], facts["unknown"]) == ("K", "T", {})
    assert facts["at"] == "2026-11-08T00:00:00.000Z"


def test_a_pipeline_is_told_with_its_position_its_lag_and_what_retention_takes_next(
    tmp_path: Path,
) -> None:
    kafka = a_broker()
    reader, first, second = only(report_of(tmp_path, kafka, {T0: 12, T1: 9}))
    assert (reader.name, reader.table, reader.reason, reader.lag) == ("p", "s.p", None, 8)
    assert reader.seconds_left == timedelta(days=1).total_seconds()
    assert (first.position, first.recorded, first.lag) == (12, True, 8)
    assert (first.left.outlook, first.left.record_ms) == (Outlook.BY_AGE, STAMP_MS)
    assert (second.position, second.lag, second.left) == (9, 0, NOTHING_WAITS)
    assert kafka.wanted == [(T0, 12)], "nothing is read where nothing waits"


def test_a_handful_of_questions_is_asked_however_many_pipelines_read_it(tmp_path: Path) -> None:
    kafka = a_broker()
    config = configured(tmp_path, p="t", q="t", r="other")
    read = stores(p=Position({T0: 12, T1: 0}), q=Position({T0: 15, T1: 0}))
    report = topic(config, "t", at=NOW, kafka=kafka, now=NOW.timestamp, stores=read)
    assert [each.name for each in report.readers] == ["p", "q"]
    assert kafka.asked == ["replicas", "facts", "retentions", "firsts", "offsets_at"]
    assert kafka.wanted == [(T0, 12), (T0, 15), (T1, 0)]


def test_a_topic_that_no_pipeline_reads_is_report_of(tmp_path: Path) -> None:
    report = topic(configured(tmp_path, p="other"), "t", kafka=a_broker())
    assert (len(report.partitions), report.readers, report.records_at_most) == (2, [], 28)


@pytest.mark.parametrize(
    ("read", "code", "positions", "recorded", "lags"),
    [
        (None, "", (5, 0), (False, False), (15, 9)),
        ({T0: 12}, "", (12, 0), (True, False), (8, 9)),
        ({T0: 3}, "RM406", (3, 0), (True, False), (15, 9)),
    ],
    ids=["nothing was read yet", "a partition was added", "and the pipeline is blocked"],
)
def test_what_the_ledger_does_not_name_is_due_from_where_the_next_run_would_start(
    tmp_path: Path,
    read: dict[TopicPartition, int] | None,
    code: str,
    positions: tuple[int, int],
    recorded: tuple[bool, bool],
    lags: tuple[int, int],
) -> None:
    reader, *both = only(report_of(tmp_path, a_broker(), read))
    assert (reader.reason or "")[:5] == code
    assert tuple(each.position for each in both) == positions
    assert tuple(each.recorded for each in both) == recorded
    assert tuple(each.lag for each in both) == lags


def test_what_was_deleted_before_it_was_read_is_gone(tmp_path: Path) -> None:
    kafka = a_broker()
    reader, first, second = only(report_of(tmp_path, kafka, {T0: 3, T1: 2}))
    assert (reader.reason or "").startswith("RM406")
    assert (first.lag, second.lag) == (15, 7)
    assert first.left.outlook is Outlook.GONE
    assert first.left.basis == "Kafka deleted the offsets 3 to 4"
    assert reader.seconds_left == 0
    assert second.left.outlook is Outlook.BY_AGE, "retention does not wait for a blocked pipeline"
    assert kafka.wanted == [(T1, 2)]


def test_a_time_that_no_calendar_has_is_told_as_its_number(tmp_path: Path) -> None:
    """Producers write microseconds, and Kafka keeps them."""
    far_ms = 1_790_000_000_000_000
    report = report_of(tmp_path, a_broker(firsts={(T0, 12): far_ms}), {T0: 12, T1: 9})
    _, first, _ = only(report)
    assert first.as_dict()["next_record_at"] is None
    assert str(far_ms) in render(report)


def test_where_the_next_run_records_a_loss_the_position_is_that_of_the_ledger(
    tmp_path: Path,
) -> None:
    config = configured(tmp_path, p={"source": {"topics": ["t"], "on_data_loss": "record"}})
    read = stores(p=Position({T0: 3, T1: 9}))
    report = topic(config, "t", kafka=a_broker(), now=NOW.timestamp, stores=read)
    reader, first, _ = only(report)
    assert (reader.reason, first.position, first.recorded, first.lag) == (None, 3, True, 15)
    assert first.left.outlook is Outlook.GONE


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (replace(FACTS, topics={"t": "other"}), "RM404"),
        (replace(FACTS, cluster="other"), "RM405"),
        (replace(FACTS, watermarks={**MARKS, T0: Watermarks(5, 11)}), "RM416"),
    ],
)
def test_a_position_in_another_log_has_no_lag(
    tmp_path: Path, answer: KafkaFacts, code: str
) -> None:
    reader, first, _ = only(report_of(tmp_path, a_broker(answer), {T0: 12, T1: 9}))
    assert (reader.reason or "").startswith(code)
    assert (first.position, first.lag, reader.lag) == (12, None, None)
    assert first.left.outlook is Outlook.UNKNOWN
    assert first.left.basis == reader.reason


@pytest.mark.parametrize(
    ("kafka", "outlook", "basis"),
    [
        (a_broker(failing={"retentions": FORBIDDEN}), Outlook.UNKNOWN, "RM303"),
        (a_broker(failing={"firsts": FORBIDDEN}), Outlook.UNKNOWN, "RM303"),
        (a_broker(firsts={}), Outlook.UNKNOWN, "no record was read there in time"),
        (a_broker(firsts={(T0, 12): None}), Outlook.NOTHING_WAITS, "only ends of transactions"),
        (a_broker(firsts={(T0, 12): -1}), Outlook.UNKNOWN, "the record has no timestamp"),
        (a_broker(retention=Retention("compact", 1, None)), Outlook.KEPT, "cleanup.policy"),
    ],
    ids=["settings", "records", "in time", "aborted", "no timestamp", "kept"],
)
def test_what_is_not_known_says_why(
    tmp_path: Path, kafka: Answering, outlook: Outlook, basis: str
) -> None:
    reader, first, _ = only(report_of(tmp_path, kafka, {T0: 12, T1: 9}))
    assert first.left.outlook is outlook
    assert first.left.basis.startswith(basis)
    assert (first.lag, reader.seconds_left) == (8, None)


@pytest.mark.parametrize(
    ("question", "part"),
    [("retentions", "retention"), ("firsts", "next records"), ("offsets_at", "at")],
)
def test_a_part_that_may_not_be_asked_is_unknown_with_the_reason(
    tmp_path: Path, question: str, part: str
) -> None:
    report = report_of(tmp_path, a_broker(failing={question: FORBIDDEN}), {T0: 12, T1: 9}, at=NOW)
    assert report.as_dict()["unknown"] == {part: str(FORBIDDEN)}
    assert report.records_at_most == 28


def test_where_a_leader_is_missing_the_partitions_are_told_without_offsets(tmp_path: Path) -> None:
    kafka = a_broker(failing={"facts": UNSETTLED}, leader=None)
    report = report_of(tmp_path, kafka, {T0: 12, T1: 9})
    reader, first, _ = only(report)
    assert [each.kept.leader for each in report.partitions] == [None, 2]
    assert (report.records_at_most, report.id) == (None, None)
    assert report.as_dict()["unknown"] == {"offsets": str(UNSETTLED)}
    assert (reader.reason, first.position, first.lag) == (str(UNSETTLED), 12, None)
    assert first.left.basis == str(UNSETTLED)


def test_a_pipeline_whose_other_topic_is_gone_keeps_its_lag(tmp_path: Path) -> None:
    kafka = a_broker(failing={"gone": TopicMissing("topic gone does not exist")})
    config, read = configured(tmp_path, p="t gone"), stores(p=Position({T0: 12, T1: 9}))
    reader, first, _ = only(topic(config, "t", kafka=kafka, now=NOW.timestamp, stores=read))
    assert (reader.reason or "").startswith("RM302")
    assert (first.position, first.lag) == (12, 8)


def test_a_defect_of_ours_is_the_reason_of_its_own_pipeline(tmp_path: Path) -> None:
    config = configured(tmp_path, p="t", q="t")
    source = config.pipelines["q"].source.model_copy(update={"start": Start(NOW)})
    at_a_time = config.pipelines["q"].model_copy(update={"source": source})
    config = config.model_copy(update={"pipelines": {**config.pipelines, "q": at_a_time}})
    kafka = a_broker(failing={"offsets_at": OverflowError("date value out of range")})
    read = stores(p=Position({T0: 12, T1: 9}))
    p, q = topic(config, "t", kafka=kafka, now=NOW.timestamp, stores=read).readers
    assert ([each.position for each in p.partitions], p.reason) == ([12, 9], None)
    assert (q.reason or "").startswith("RM900 q: an error that nobody foresaw; found Overflow")


@pytest.mark.parametrize(
    ("name", "at", "said"),
    [
        ("a b", None, "no topic can have that name"),
        ("t", NOW.replace(tzinfo=None), "a time without a zone"),
        ("t", NOW.replace(year=1969), "a time before 1970"),
    ],
)
def test_what_kafka_cannot_be_asked_for_is_refused_before_it_is_asked(
    tmp_path: Path, name: str, at: datetime | None, said: str
) -> None:
    kafka = a_broker()
    with pytest.raises(RangesRefused, match=said):
        topic(configured(tmp_path, p="t"), name, at=at, kafka=kafka)
    assert kafka.asked == []


def test_a_topic_that_does_not_exist_is_raised_before_anything_else_is_asked(
    tmp_path: Path,
) -> None:
    kafka = a_broker(failing={"replicas": TopicMissing("topic t does not exist")})
    with pytest.raises(TopicMissing):
        report_of(tmp_path, kafka, None)
    assert kafka.asked == ["replicas"]


def test_tables_in_a_catalog_are_refused_as_status_does(tmp_path: Path) -> None:
    place = {"catalog": "main", "schema": "rivermouth", "volume": "state"}
    config = configured(tmp_path, warehouse=place, p="t")
    with pytest.raises(ConfigError, match="the tables are in the catalog main"):
        topic(config, "t", kafka=a_broker())
