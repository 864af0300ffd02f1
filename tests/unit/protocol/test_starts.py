"""Where reading starts, which partitions are newly discovered, and how much is left to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from rivermouth.config import At, OnDataLoss, OnMissingTime, Pipeline, Start, Topics
from rivermouth.config.start import Whole
from rivermouth.errors import (
    Halt,
    LogTruncated,
    OtherCluster,
    PartitionGone,
    RetentionLost,
    StartUnknown,
    TopicRecreated,
)
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts, behind
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition, Watermarks
from rivermouth.protocol.starts import (
    Starts,
    discovered,
    ranges_between,
    start_is_over,
    start_positions,
)
from tests.builders import CLUSTER, TOPIC, TOPICS, entry_after, place, position, span
from tests.doubles import a_pipeline

pytestmark = pytest.mark.unit

NEWEST = entry_after(entry_after(None, span(0, 0), span(0, 8, 1)), span(0, 5))


def facts(
    watermarks: Mapping[TopicPartition, tuple[int, int]],
    *,
    cluster: str = CLUSTER,
    topics: Mapping[str, str] = TOPICS,
) -> KafkaFacts:
    marks = {each: Watermarks(*pair) for each, pair in watermarks.items()}
    return KafkaFacts(cluster, topics, marks)


HERE = facts({place(0): (0, 50), place(1): (3, 40)})
EARLIEST, LATEST = Start("earliest"), Start("latest")


END = position(50, 40)
SIX = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)


def timed(*offsets: int | None) -> KafkaFacts:
    """What Kafka says where it was asked for a time."""
    return replace(HERE, at_times={place(number): at for number, at in enumerate(offsets)})


def at(offset: int) -> Start:
    return Start(offsets={TOPIC: {0: offset, 1: offset}})


@pytest.mark.parametrize(
    ("name", "newest", "kafka", "start", "expected"),
    [
        ("earliest is what Kafka still has", None, HERE, EARLIEST, position(0, 3)),
        ("latest is the last stable offset", None, HERE, LATEST, position(50, 40)),
        ("a number is taken", None, HERE, at(7), position(7, 7)),
        (
            "one at either end of a log is taken",
            None,
            HERE,
            Start(offsets={TOPIC: {0: 50, 1: 3}}),
            position(50, 3),
        ),
        ("all of a topic starts somewhere", None, HERE, Start(offsets={TOPIC: "latest"}), END),
        ("the first record from a time on", None, timed(7, 5), Start(SIX), position(7, 5)),
        (
            "an open transaction holds back the first record from a time on",
            None,
            timed(7, 45),
            Start(SIX),
            position(7, 40),
        ),
        (
            "a partition in which there is nothing to be found is not asked about",
            None,
            timed(7, None),
            Start(offsets={TOPIC: {0: SIX, 1: "earliest"}}),
            position(7, 3),
        ),
        ("the ledger wins over the setting", NEWEST, HERE, LATEST, position(5, 8)),
        (
            "a partition added to a known topic starts at its beginning, whatever the setting",
            NEWEST,
            facts({place(0): (0, 50), place(1): (0, 9), place(2): (0, 60)}),
            LATEST,
            position(5, 8, 0),
        ),
        (
            "a topic added to the pipeline starts where the setting says",
            NEWEST,
            facts(
                {place(0): (0, 50), place(1): (0, 9), place(0, "new"): (1, 6)},
                topics={**TOPICS, "new": "topic-2"},
            ),
            LATEST,
            Position({place(0): 5, place(1): 8, place(0, "new"): 6}),
        ),
        (
            "a topic taken out of the pipeline is not read, and not missed",
            NEWEST,
            facts({place(0, "new"): (1, 6)}, topics={"new": "topic-2"}),
            EARLIEST,
            Position({place(0, "new"): 1}),
        ),
        (
            "a position at either end is held",
            NEWEST,
            facts({place(0): (5, 50), place(1): (0, 8)}),
            EARLIEST,
            position(5, 8),
        ),
    ],
)
def test_a_run_starts_at_explicit_offsets(
    name: str, newest: Entry | None, kafka: KafkaFacts, start: Start, expected: Position
) -> None:
    found = start_positions(a_pipeline(start=start), newest, kafka)
    assert found == Starts(expected), name


@pytest.mark.parametrize(
    ("name", "newest", "kafka", "start", "halt"),
    [
        ("another cluster", NEWEST, facts({}, cluster="other"), EARLIEST, OtherCluster),
        ("another topic", NEWEST, facts({}, topics={"t": "other"}), EARLIEST, TopicRecreated),
        ("a partition gone", NEWEST, facts({place(0): (0, 9)}), EARLIEST, PartitionGone),
        (
            "retention passed the position by one",
            NEWEST,
            facts({place(0): (6, 9), place(1): (0, 9)}),
            EARLIEST,
            RetentionLost,
        ),
        (
            "the log ends one before the position",
            NEWEST,
            facts({place(0): (0, 4), place(1): (0, 9)}),
            EARLIEST,
            LogTruncated,
        ),
        (
            "a partition was added, and its first records are deleted already",
            NEWEST,
            facts({place(0): (0, 50), place(1): (0, 9), place(2): (4, 60)}),
            LATEST,
            RetentionLost,
        ),
        ("a start that Kafka no longer has", None, HERE, at(2), StartUnknown),
        ("a start that Kafka does not have yet", None, HERE, at(45), StartUnknown),
    ],
)
def test_a_start_that_cannot_be_right_halts(
    name: str, newest: Entry | None, kafka: KafkaFacts, start: Start, halt: type[Halt]
) -> None:
    with pytest.raises(halt):
        start_positions(a_pipeline(start=start), newest, kafka)


UNNAMED = "t-1 is not named"


@pytest.mark.parametrize(
    ("start", "kafka", "found", "write"),
    [
        ({0: 7}, HERE, UNNAMED, "{t: {0: 7, 1: earliest}}"),
        ({0: "latest", 1: 4, 9: 0}, HERE, "t-9 does not exist", "{t: {0: latest, 1: 4}}"),
        ({0: 7, 9: 0}, HERE, f"{UNNAMED}; t-9 does not exist", "{t: {0: 7, 1: earliest}}"),
        (
            {0: 51, 1: 2},
            HERE,
            "t-0 has the offsets from 0 to 50, not 51; t-1 has the offsets from 3 to 40, not 2",
            "{t: {0: latest, 1: earliest}}",
        ),
        (
            {0: SIX, 1: SIX},
            timed(4, None),
            "t-1 has no record from 2026-11-01T06:00:00Z on",
            "{t: {0: 2026-11-01T06:00:00Z, 1: latest}}, or on_missing_time: latest",
        ),
        (
            SIX,
            timed(4, None),
            "t-1 has no record from 2026-11-01T06:00:00Z on",
            "{t: {0: 2026-11-01T06:00:00Z, 1: latest}}, or on_missing_time: latest",
        ),
    ],
)
def test_a_start_that_does_not_fit_names_all_partitions_at_once(
    start: Whole | Mapping[int, At], kafka: KafkaFacts, found: str, write: str
) -> None:
    with pytest.raises(StartUnknown) as halted:
        start_positions(a_pipeline(start=Start(offsets={TOPIC: start})), None, kafka)
    assert halted.value.found == found
    assert halted.value.remedy == f"Write start: {write}"
    known = start_positions(a_pipeline(start=Start(offsets={TOPIC: start})), NEWEST, kafka)
    assert known.position == position(5, 8), "it has no effect where there is a ledger"


def test_what_to_write_leaves_the_other_topics_where_they_start() -> None:
    marks = {place(0): (0, 50), place(0, "u"): (0, 9), place(0, "v"): (0, 9)}
    kafka = facts(marks, topics={**TOPICS, "u": "topic-2", "v": "topic-3"})
    start = Start(offsets={TOPIC: {1: 5}, "u": "latest", "v": {0: 3}})
    with pytest.raises(StartUnknown) as halted:
        start_positions(a_pipeline("t", "u", "v", "w", start=start), None, kafka)
    written = "{t: {0: earliest}, u: latest, v: {0: 3}, w: earliest}"
    assert halted.value.remedy == f"Write start: {written}"


def test_what_to_write_names_no_topic_that_starts_at_its_first_record_unnamed() -> None:
    """Some partitions of t were assigned; then a pattern took their place, and u came."""
    newest = replace(entry_after(None, span(0, 0)), assigned=frozenset({TOPIC}))
    marks = {**HERE.watermarks, place(0, "u"): Watermarks(1, 6)}
    topics = {**TOPICS, "u": "topic-2"}
    kafka = replace(timed(4, None), watermarks=marks, topics=topics)
    pipeline = a_pipeline(pattern=".*", start=Start(SIX))
    source = pipeline.source.model_copy(update={"topics": Topics(("t", "u"), pattern=".*")})
    with pytest.raises(StartUnknown) as halted:
        start_positions(pipeline.model_copy(update={"source": source}), newest, kafka)
    written = "{t: {0: 2026-11-01T06:00:00Z, 1: latest}}"
    assert halted.value.remedy == f"Write start: {written}, or on_missing_time: latest"


def test_an_empty_partition_has_one_start_only() -> None:
    kafka = facts({place(0): (0, 50), place(1): (4, 4)})
    kafka = replace(kafka, at_times={place(0): 7, place(1): None})
    found = start_positions(a_pipeline(start=Start(SIX)), None, kafka)
    assert found.position == position(7, 4)


def test_a_partition_without_a_record_of_that_time_may_start_at_its_end() -> None:
    pipeline = a_pipeline(start=Start(SIX), on_missing_time=OnMissingTime.LATEST)
    assert start_positions(pipeline, None, timed(4, None)).position == position(4, 40)


def test_newly_discovered_partitions_are_empty_ranges_where_they_start() -> None:
    assert discovered(Starts(position(5, 8, 0)), NEWEST) == (span(0, 0, 2),)
    assert discovered(Starts(position(5, 8)), NEWEST) == ()
    assert discovered(Starts(position(50, 3)), None) == (span(50, 50), span(3, 3, 1))


def test_what_a_partition_added_late_has_lost_is_recorded_as_lost() -> None:
    kafka = facts({place(0): (0, 50), place(1): (0, 9), place(2): (4, 60)})
    pipeline = a_pipeline(start=LATEST, on_data_loss=OnDataLoss.RECORD)
    found = start_positions(pipeline, NEWEST, kafka)
    assert found == Starts(position(5, 8, 4), (span(0, 4, 2),))
    assert discovered(found, NEWEST) == (), "its range records it"


@pytest.mark.parametrize(
    ("name", "before", "after", "expected"),
    [
        ("nothing moved", position(5, 8), position(5, 8), ()),
        ("one moved", position(5, 8), position(5, 9), (span(8, 9, 1),)),
        ("one appeared with records", position(5), position(5, 3), (span(0, 3, 1),)),
        ("one appeared empty", position(5), position(5, 0), (span(0, 0, 1),)),
        ("both", position(5), position(7, 0), (span(5, 7), span(0, 0, 1))),
    ],
)
def test_the_ranges_of_a_batch_lie_between_two_positions(
    name: str, before: Position, after: Position, expected: tuple[OffsetRange, ...]
) -> None:
    assert ranges_between(before, after) == expected, name


def test_a_partition_that_moves_backwards_halts() -> None:
    with pytest.raises(LogTruncated, match="t-1"):
        ranges_between(position(5, 8), position(6, 7))


@pytest.mark.parametrize(
    ("stands", "watermarks", "left"),
    [
        (position(5, 8), {place(0): (0, 50), place(1): (0, 10)}, 47),
        (position(5), {place(0): (0, 5)}, 0),
        (position(5), {place(0): (0, 3)}, 0),
        (position(5), {place(0): (9, 12)}, 3),
        (position(), {place(0): (2, 12)}, 10),
        (position(5), {}, 0),
    ],
)
def test_behind_counts_what_can_still_be_read(
    stands: Position, watermarks: dict[TopicPartition, tuple[int, int]], left: int
) -> None:
    assert behind(stands, facts(watermarks).watermarks) == left


@pytest.mark.parametrize(
    ("name", "pipeline", "newest", "over"),
    [
        ("before the first run", a_pipeline(start=EARLIEST), None, False),
        ("all topics have begun", a_pipeline(start=EARLIEST), NEWEST, True),
        ("nobody wrote it", a_pipeline(), NEWEST, False),
        ("one topic has not begun", a_pipeline(TOPIC, "b", start=LATEST), NEWEST, False),
        ("a pattern", a_pipeline(pattern=".*", start=LATEST), NEWEST, True),
        ("named and begun", a_pipeline(pattern=".*", start=at(5)), NEWEST, True),
        (
            "a pattern, and the topic that it names has not begun",
            a_pipeline(pattern=".*", start=Start(offsets={"b": "latest"})),
            NEWEST,
            False,
        ),
    ],
)
def test_a_start_is_over_once_no_topic_can_start_by_it(
    name: str, pipeline: Pipeline, newest: Entry | None, over: bool
) -> None:
    assert start_is_over(pipeline, newest) is over, name
