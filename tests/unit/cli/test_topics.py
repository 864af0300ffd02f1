"""``topic``: what people see of a report, and what the command refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from rivermouth.cli.asking import read_time
from rivermouth.errors import ConfigError
from rivermouth.operate.topic_report import PartitionReport, Reader, Reading, TopicReport
from rivermouth.protocol.kafka_facts import (
    NOTHING_WAITS,
    Replicas,
    Retention,
    TimeLeft,
    gone,
    time_left,
    unknown,
)
from rivermouth.run.tables import topic_table as render
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

AT = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)
AT_MS = int(AT.timestamp() * 1000)
WEEK = Retention("delete", 7 * 86_400_000, None)
SIZED = replace(WEEK, size=1_000_000)
DAY_LATER = float(AT_MS + 86_400_000)
REPORT = TopicReport(
    name="orders",
    partitions=(
        PartitionReport(Replicas(0, 1, (1, 2), (1, 2)), 100, 250, 260, 170),
        PartitionReport(Replicas(1, None, (2, 1), (1,)), 0, 9, 9, None),
    ),
    readers=(
        Reader(
            "orders",
            "silver.orders",
            None,
            (
                Reading(0, 200, True, 50, time_left(AT_MS, WEEK, DAY_LATER)),
                Reading(1, 9, True, 0, NOTHING_WAITS),
            ),
        ),
    ),
    at=AT,
    cluster="K",
    id="T",
    retention=WEEK,
)
SHOWN = """\
partition  leader  replicas  in sync  earliest  stable  latest  at time
───────────────────────────────────────────────────────────────────────
        0       1  1,2       1,2           100     250     260      170
        1    none  2,1       1               0       9       9        -

orders: 2 partitions, at most 169 records, 10 behind open transactions
cleanup.policy: delete; retention.ms: 7 days; retention.bytes: no limit
at time: the first offset from 2026-11-01 06:00 UTC on; -: no record is that
  young

pipeline  partition  position  lag  next record of        time left
────────────────────────────────────────────────────────────────────────
orders            0       200   50  2026-11-01 06:00 UTC  at least 6.0 d
orders            1         9    0  -                     nothing waits

orders: lag 50, into silver.orders
time left: the record's timestamp plus retention.ms 604,800,000; Kafka deletes
  whole segments, so not before"""


def test_a_topic_is_shown_as_two_tables_and_what_they_rest_on() -> None:
    assert render(REPORT) == SHOWN


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (time_left(AT_MS, WEEK, DAY_LATER * 2), "none: overdue"),
        (time_left(AT_MS, SIZED, DAY_LATER), "6.0 d by age"),
        (time_left(AT_MS, replace(SIZED, age_ms=None), DAY_LATER), "unknown: by size"),
        (time_left(AT_MS, replace(WEEK, age_ms=None), DAY_LATER), "not deleted"),
        (gone(3, 100), "deleted"),
        (unknown("RM303 k: the broker refused"), "unknown"),
    ],
)
def test_the_time_left_is_shown_with_its_basis(left: TimeLeft, shown: str) -> None:
    [reader] = REPORT.readers
    readings = (Reading(0, 3, False, 50, left),)
    text = render(replace(REPORT, readers=(replace(reader, partitions=readings),)))
    [row] = [line for line in text.splitlines() if line.startswith("orders            0")]
    assert row.endswith(shown)
    assert row.split()[2:4] == ["3", "(new)"]
    assert f"time left: {left.basis}" in text.replace("\n  ", " ")


def test_what_is_not_known_is_a_dash_and_its_reason_is_said_once() -> None:
    why = "RM304 k: the cluster cannot answer yet. It passes by itself"
    [reader] = REPORT.readers
    blind = replace(
        REPORT,
        partitions=[PartitionReport(each.kept) for each in REPORT.partitions],
        readers=(
            replace(reader, reason="RM1 it", partitions=(Reading(0, 3, True, None, unknown(why)),)),
        ),
        at=None,
        retention=None,
        unknown={"offsets": why},
    )
    text = render(blind)
    assert "orders: 2 partitions, at most - records" in text
    assert f"offsets: unknown: {why}" in text.replace("\n  ", " ")
    assert "orders: the next run would not go on: RM1 it" in text
    assert text.count("RM304") == 1
    assert max(map(len, text.splitlines())) <= 80


def test_long_names_and_numbers_fit_80_columns() -> None:
    [reader] = REPORT.readers
    far = 10**14
    wide = replace(
        REPORT,
        partitions=[
            PartitionReport(Replicas(999, 1001, (1001, 1002, 1003), (1001,)), far, far, far, far)
        ],
        readers=(
            replace(
                reader,
                name="a_pipeline_with_a_rather_long_name",
                partitions=(Reading(999, far, True, far, time_left(AT_MS, SIZED, DAY_LATER)),),
            ),
        ),
    )
    assert max(map(len, render(wide).splitlines())) <= 80


def test_a_topic_without_a_reader_says_so() -> None:
    assert render(replace(REPORT, readers=())).endswith("no pipeline of the configuration reads it")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", None),
        ("2026-11-01T06:00:00Z", AT),
        ("2026-11-01 08:00+02:00", AT),
    ],
)
def test_a_time_is_written_as_in_the_configuration(text: str, moment: datetime | None) -> None:
    assert read_time(text) == moment


@pytest.mark.parametrize(
    "text", ["2026-11-01T06:00:00", "2026-11-01", "earliest", "{}", "1969-01-01T00:00:00Z", "now"]
)
def test_what_is_no_time_with_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write a time with its zone, from 1970 on"):
        read_time(text)


def test_wrong_words_are_exit_code_2(rivermouth: Rivermouth, lake_yml: Path) -> None:
    refused = rivermouth("topic", lake_yml, "bids", "--at", "yesterday")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("--at yesterday: write a time with its zone")
    assert "TOPIC: write the name of a topic" in rivermouth("topic", lake_yml, "").err
    illegal = rivermouth("topic", lake_yml, "../x")
    assert (illegal.code, illegal.out) == (2, "")
    assert illegal.err.startswith("RM704 topic: no topic can have that name; expected a name of")


@pytest.mark.slow
def test_a_broker_that_is_away_is_exit_code_1(rivermouth: Rivermouth, lake_yml: Path) -> None:
    away = rivermouth("topic", lake_yml, "bids")
    assert (away.code, away.out) == (1, "")
    assert away.err.startswith("RM301 localhost:1: no broker answers")
