"""Ranges that are asked for: overlaps, borders, what is deleted, and other topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.errors import OtherCluster, RangesRefused, RetentionLost, TopicRecreated
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Watermarks
from rivermouth.replay.ranges import (
    check_kept,
    check_same_source,
    check_written,
    configured,
    disjoint,
    merged,
    one_per_partition,
)
from tests.builders import CLUSTER, TOPICS, place, span
from tests.unit.verification.doubles import configured as configuration

pytestmark = pytest.mark.unit

Ranges = tuple[OffsetRange, ...]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((), ()),
        ((span(5, 5), span(0, 0, 1)), ()),
        ((span(4, 6), span(0, 2)), (span(0, 2), span(4, 6))),
        ((span(2, 4), span(0, 2)), (span(0, 2), span(2, 4))),
        ((span(0, 4, 1), span(0, 4, 0)), (span(0, 4, 0), span(0, 4, 1))),
        ((span(0, 4), span(0, 4, topic="u")), (span(0, 4), span(0, 4, topic="u"))),
        ((span(0, 4), span(2, 2)), (span(0, 4),)),
    ],
)
def test_ranges_that_share_no_offset_are_put_in_order_without_the_empty_ones(
    given: Ranges, found: Ranges
) -> None:
    assert disjoint(given) == found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((span(0, 4), span(0, 4)), "t-0[0,4) and t-0[0,4)"),
        ((span(3, 6), span(0, 4)), "t-0[0,4) and t-0[3,6)"),
        ((span(0, 9), span(2, 3)), "t-0[0,9) and t-0[2,3)"),
        (tuple(span(n, n + 2) for n in range(8)), "; 2 more"),
    ],
)
def test_an_offset_that_is_given_twice_is_refused(given: Ranges, said: str) -> None:
    with pytest.raises(RangesRefused) as refused:
        disjoint(given)
    assert refused.value.code == "RM704"
    assert said in refused.value.found


@pytest.mark.parametrize(
    ("given", "as_one"),
    [
        ((), ()),
        ((span(0, 2), span(2, 4), span(4, 5)), (span(0, 5),)),
        ((span(0, 2), span(3, 4)), (span(0, 2), span(3, 4))),
        ((span(0, 2), span(2, 4, 1)), (span(0, 2), span(2, 4, 1))),
    ],
)
def test_ranges_that_touch_are_read_as_one(given: Ranges, as_one: Ranges) -> None:
    assert merged(given) == as_one


def test_a_read_has_one_range_of_a_partition_and_there_are_as_few_reads_as_can_be() -> None:
    given = (span(0, 2), span(3, 4), span(6, 7), span(0, 9, 1), span(10, 11, 1))
    assert one_per_partition(given) == (
        (span(0, 2), span(0, 9, 1)),
        (span(3, 4), span(10, 11, 1)),
        (span(6, 7),),
    )
    assert one_per_partition(()) == ()


FACTS = KafkaFacts(
    CLUSTER,
    TOPICS,
    {place(0): Watermarks(5, 20), place(1): Watermarks(0, 8)},
    held_back={place(1): 3},
)


@pytest.mark.parametrize("given", [(span(5, 20), span(0, 8, 1)), (span(0, 6),), ()])
def test_ranges_that_end_in_the_log_were_written(given: Ranges) -> None:
    check_written(given, FACTS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((span(5, 21),), "t-0[5,21) in a log that ends at 20."),
        ((span(0, 9, 1),), "t-1[0,9) in a log that ends at 8, with 3 offsets behind open"),
        ((span(0, 1, 2), span(4, 5, 2)), "t: 0 to 1; found t-2."),
    ],
)
def test_a_range_that_is_not_written_is_refused_with_what_there_is(
    given: Ranges, said: str
) -> None:
    with pytest.raises(RangesRefused) as refused:
        check_written(given, FACTS)
    assert said in str(refused.value)


def test_a_range_that_begins_before_the_first_kept_offset_is_lost() -> None:
    check_kept((span(5, 6), span(0, 8, 1)), FACTS)
    with pytest.raises(RetentionLost) as lost:
        check_kept((span(0, 8, 1), span(4, 6), span(7, 8)), FACTS)
    assert lost.value.found == "t-0[4,6) in a log that starts at 5"
    assert "rivermouth.readable" in lost.value.remedy


def test_recorded_ranges_belong_to_a_cluster_and_to_the_id_of_a_topic() -> None:
    check_same_source(CLUSTER, TOPICS.items(), FACTS)
    check_same_source(CLUSTER, [("t", "")], FACTS)  # a broker that tells no ids
    with pytest.raises(OtherCluster):
        check_same_source("another", TOPICS.items(), FACTS)
    with pytest.raises(TopicRecreated, match="created again since"):
        check_same_source(CLUSTER, [("t", "another")], FACTS)


def test_a_pipeline_is_one_of_the_configuration(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    assert configured(config, "p") is config.pipelines["p"]
    with pytest.raises(RangesRefused, match='no pipeline "q"'):
        configured(config, "q")
