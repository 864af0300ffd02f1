"""What the offsets of a ledger belong to (invariant 5): every change is named, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from rivermouth.errors import (
    Halt,
    IdentityChanged,
    LogTruncated,
    OtherCluster,
    PartitionGone,
    RetentionLost,
    TableReplaced,
    TopicRecreated,
)
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.guards import (
    check_identity,
    check_not_truncated,
    check_partition,
    check_source,
    to_ask_about,
)
from rivermouth.protocol.offsets import Anchor, TopicPartition, Watermarks
from tests.builders import CLUSTER, PIPELINE, TABLE, TOPICS, entry_after, place, span

pytestmark = pytest.mark.unit

NEWEST = entry_after(None, span(0, 5))
CONFIG = NEWEST.config
ZERO = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize(
    ("cluster", "topics"),
    [
        (CLUSTER, TOPICS),
        (CLUSTER, {**TOPICS, "new": "topic-2"}),
        (CLUSTER, {"new": "topic-2"}),
        (CLUSTER, {}),
    ],
    ids=["as recorded", "a topic more", "another topic", "none"],
)
def test_the_recorded_cluster_and_topics_pass(cluster: str, topics: Mapping[str, str]) -> None:
    check_source(PIPELINE, NEWEST, cluster, topics)


@pytest.mark.parametrize(
    ("cluster", "topics", "halt", "expected", "found"),
    [
        ("other", TOPICS, OtherCluster, "cluster cluster-1", "cluster other"),
        (CLUSTER, {"t": "other"}, TopicRecreated, "topic id topic-1", "topic id other"),
    ],
)
def test_another_cluster_or_topic_halts_with_both_ids(
    cluster: str, topics: Mapping[str, str], halt: type[Halt], expected: str, found: str
) -> None:
    with pytest.raises(halt) as caught:
        check_source(PIPELINE, NEWEST, cluster, topics)
    assert (caught.value.expected, caught.value.found) == (expected, found)
    assert caught.value.where.startswith(PIPELINE)


@pytest.mark.parametrize("recorded", ["", ZERO])
@pytest.mark.parametrize("now", ["", ZERO, "topic-1"])
def test_a_topic_id_that_is_not_told_is_compared_with_nothing(recorded: str, now: str) -> None:
    newest = replace(NEWEST, topics={"t": recorded})
    check_source(PIPELINE, newest, CLUSTER, {"t": now})
    check_source(PIPELINE, replace(NEWEST, topics={"t": now}), CLUSTER, {"t": recorded})


@pytest.mark.parametrize(
    ("table", "config", "halt"),
    [
        (TABLE, CONFIG, None),
        (TABLE, {**CONFIG, "key": None}, None),
        ("other", CONFIG, TableReplaced),
        (TABLE, {"mode": "upsert"}, IdentityChanged),
        (TABLE, {}, IdentityChanged),
        (TABLE, {**CONFIG, "keys": ["id"]}, IdentityChanged),
    ],
    ids=["the same", "a setting at nothing", "table", "changed", "gone", "new"],
)
def test_another_table_or_identity_halts(
    table: str, config: Mapping[str, object], halt: type[Halt] | None
) -> None:
    if halt is None:
        check_identity(PIPELINE, NEWEST, table, config)
        return
    with pytest.raises(halt):
        check_identity(PIPELINE, NEWEST, table, config)


def test_a_changed_setting_is_named_with_both_values() -> None:
    with pytest.raises(IdentityChanged) as caught:
        check_identity(PIPELINE, NEWEST, TABLE, {"mode": "upsert"})
    assert "mode" in caught.value.what
    assert (caught.value.expected, caught.value.found) == ("'append'", "'upsert'")


@pytest.mark.parametrize(
    ("low", "high", "halt"),
    [
        (0, 9, None),
        (5, 5, None),
        (5, 9, None),
        (0, 5, None),
        (6, 9, RetentionLost),
        (0, 4, LogTruncated),
        (6, 6, RetentionLost),
    ],
)
def test_a_partition_must_hold_the_next_offset_or_end_there(
    low: int, high: int, halt: type[Halt] | None
) -> None:
    if halt is None:
        check_partition(PIPELINE, place(), 5, Watermarks(low, high))
        return
    with pytest.raises(halt) as caught:
        check_partition(PIPELINE, place(), 5, Watermarks(low, high))
    assert caught.value.where == "orders t-0"


def test_a_partition_that_is_gone_halts_and_lost_offsets_are_named() -> None:
    with pytest.raises(PartitionGone):
        check_partition(PIPELINE, place(), 5, None)
    with pytest.raises(RetentionLost, match=r"\[5,8\) were deleted"):
        check_partition(PIPELINE, place(), 5, Watermarks(8, 9))


LED = replace(NEWEST, epochs={place(): 3})


@pytest.mark.parametrize(
    ("newest", "epochs", "asked"),
    [
        (None, {place(): 4}, {}),
        (LED, {place(): 3}, {}),
        (LED, {place(): 4}, {place(): (5, 3)}),
        (LED, {}, {}),
        (NEWEST, {place(): 4}, {}),
        (LED, {place(1): 4}, {}),
    ],
    ids=[
        "no entry",
        "the same leader",
        "another leader",
        "the broker does not tell",
        "the entry does not tell",
        "another partition",
    ],
)
def test_kafka_is_asked_where_a_log_ends_only_if_its_leader_has_changed(
    newest: Entry | None,
    epochs: Mapping[TopicPartition, int],
    asked: Mapping[TopicPartition, Anchor],
) -> None:
    assert to_ask_about(newest, epochs) == asked


def test_a_log_that_was_truncated_below_the_position_halts_however_long_it_is_now() -> None:
    check_not_truncated(PIPELINE, LED, {})
    with pytest.raises(LogTruncated, match="cut at 2") as caught:
        check_not_truncated(PIPELINE, LED, {place(): 2})
    assert (caught.value.where, caught.value.found) == ("orders t-0", "an end at 2")
    assert caught.value.expected == "leader epoch 3 to reach to 5"
