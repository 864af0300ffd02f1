"""Spark's options in ``docs/reading.md``: each is taken, or refused with what to write instead.

What the page says to write is loaded, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config import Config, Source
from rivermouth.config.settings import keys_of, settings

pytestmark = pytest.mark.unit

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]

PAGE = (Path(__file__).parents[3] / "docs" / "reading.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("\n## Spark's options and ours\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| `([^`]+)` \| (\S+) \| `([^`]+)` \| (.+) \|$", TABLE, re.MULTILINE)
TAKEN = {spark: written for spark, taken, written, _ in ROWS if taken == "yes"}
REFUSED = {spark: written for spark, taken, written, _ in ROWS if taken == "no"}
STARTS = PAGE.partition("\n## Start\n")[2].partition("\n## ")[0]
WRITTEN_STARTS = re.findall(r"^\| `([^`]+)` \|", STARTS, re.MULTILINE)
ALIASES = {each.spark.name: each.key for each in settings(Source) if each.spark}
OPTIONS = [("kafka.group.id", "kafka.group.id"), ("kafka.…", "kafka.max.poll.records")]
COMMAND = "rivermouth run --once"
OF_SPARK = """
subscribe subscribePattern assign
startingOffsets startingTimestamp startingOffsetsByTimestamp startingOffsetsByTimestampStrategy
endingOffsets endingTimestamp endingOffsetsByTimestamp failOnDataLoss
maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition
includeHeaders groupIdPrefix kafkaConsumer.pollTimeoutMs
fetchOffset.numRetries fetchOffset.retryIntervalMs
"""
"""Those that the classes of its Kafka source know, by its jar of version 4.2.0."""
OF_CLIENTS = "kafka.group.id kafka.bootstrap.servers kafka.…"
OF_DSTREAMS = "spark.streaming.kafka.maxRatePerPartition"


def key_of(written: str) -> str:
    return written.partition(":")[0]


def in_source(written: str, above: str = "") -> str:
    """A file whose only pipeline has this line in its section ``source``."""
    topics = "" if written.startswith(("topics:", "subscribe:")) else "topics: [orders, returns]"
    kafka = "" if above.startswith("kafka:") else 'kafka: {bootstrap.servers: "k:9092"}'
    return f"""\
version: 1
{kafka}
{above}
warehouse: lake
pipelines:
  p:
    source:
      {topics}
      format: json
      {written}
    schema: id BIGINT
    target: {{table: s.t}}
"""


def as_told(written: str) -> str:
    """A file with a line of the page in its place: in the source, else at the top."""
    key = key_of(written)
    if key in keys_of(Source) or key.startswith("kafka."):
        return in_source(written)
    return in_source("start: earliest", above=written)


def test_the_table_names_all_options_of_sparks_source_once() -> None:
    names = [each[0] for each in ROWS]
    assert len(names) == TABLE.count("\n| `"), "every row is read here"
    assert sorted(names) == sorted(f"{OF_SPARK} {OF_CLIENTS} {OF_DSTREAMS}".split())


@pytest.mark.parametrize(
    "written", sorted({*(each[2] for each in ROWS), *WRITTEN_STARTS} - {COMMAND})
)
def test_what_the_page_says_to_write_loads(written: str, loads: Loads) -> None:
    assert loads(as_told(written)).pipelines


def test_the_page_shows_every_way_to_start() -> None:
    assert [key_of(each) for each in WRITTEN_STARTS] == ["start"] * 5 + ["on_missing_time"]


def test_what_does_not_stand_in_the_source_is_told_where_it_stands() -> None:
    told = [key_of(written) for _, _, written, text in ROWS if "at the top of the file" in text]
    keys = [key_of(each[2]) for each in ROWS]
    in_place = {*keys_of(Source), *(each for _, each in OPTIONS), COMMAND}
    assert [each for each in keys if each not in in_place] == told
    assert {*told} == {"spark", "retry", "kafka"}


def test_the_names_that_are_taken_are_those_of_the_settings() -> None:
    taken = [(spark, key_of(written)) for spark, written in TAKEN.items()]
    assert sorted(taken) == sorted([*ALIASES.items(), *OPTIONS])


@pytest.mark.parametrize("spark", sorted(ALIASES))
def test_an_option_that_is_taken_does_what_ours_does(spark: str, loads: Loads) -> None:
    key, _, value = TAKEN[spark].partition(": ")
    ours = loads(in_source(f"{key}: {value}"))
    assert loads(in_source(f"{spark}: {value}")) == ours
    other = loads(in_source("topics: [other]"))
    assert getattr(ours.pipelines["p"].source, key) != getattr(other.pipelines["p"].source, key)


@pytest.mark.parametrize("spark", sorted(REFUSED))
def test_an_option_that_is_not_taken_is_refused_with_what_to_write(
    spark: str, problems: Problems
) -> None:
    [said] = problems(in_source(f"{spark}: 1"))
    written = REFUSED[spark]
    told = {COMMAND: COMMAND, "kafka": "belongs in the section kafka"}
    assert re.search(r" RM1(04|11) ", said)
    assert spark in said
    assert told.get(key_of(written), f"write {key_of(written)}: ") in said
    assert "known keys" not in said


def test_only_a_loss_that_is_told_may_be_passed_over(loads: Loads, problems: Problems) -> None:
    [(taken, written)] = [each[1:3] for each in ROWS if each[0] == "failOnDataLoss"]
    assert loads(in_source(f"failOnDataLoss: {taken.strip('`')}")).pipelines
    [said] = problems(in_source("failOnDataLoss: false"))
    assert said.endswith(f"write {written}")
