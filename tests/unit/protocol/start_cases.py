"""Topics, starts and ledgers by dice, for the properties of where partitions start."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rivermouth.config import Pipeline, load
from rivermouth.kafka.facts import facts_of, with_times, with_topics
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import Anchor, TopicPartition, Watermarks
from rivermouth.protocol.starts import start_positions
from tests.builders import CLUSTER, entry_after, place, span

At = int | str | datetime
Said = At | dict[int, At]
Offsets = dict[TopicPartition, int]
SIX = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)
ZONES = (timezone.utc, timezone(timedelta(hours=5, minutes=30)))
NAMES = ("t", "a.b", "1", "null", "-", "2026-11-01", "_u")
"""Names that Kafka takes for topics. Some of them would be something else in YAML."""
ABSENT = "absent"
"""A topic that the pattern matches and that is not there."""
FILE = """\
version: 1
kafka: {{bootstrap.servers: "k:9092"}}
warehouse: lake
pipelines:
  p:
    source: {{topics: {topics}, format: json, on_missing_time: {missing}, start: {start}}}
    schema: id BIGINT
    target: {{table: s.t}}
"""


@dataclass(frozen=True)
class Log:
    """One partition: its ends as a ``read_committed`` reader has them, and when records came.

    ``seconds`` are those after six, of each record from ``low`` on, also of those behind ``high``.
    """

    low: int
    high: int
    seconds: tuple[int, ...]

    def first_from(self, at: datetime) -> int | None:
        """The first offset of a record of this time or later."""
        came = (SIX + timedelta(seconds=each) for each in self.seconds)
        return next((self.low + n for n, each in enumerate(came) if each >= at), None)


@dataclass(frozen=True)
class Cluster:
    """A broker that answers from these logs. See ``AskKafka``."""

    logs: Mapping[TopicPartition, Log]

    def names(self) -> frozenset[str]:
        return frozenset(each.topic for each in self.logs)

    def missing(self, topics: Iterable[str]) -> frozenset[str]:
        return frozenset(topics) - self.names()

    def facts(self, topics: Iterable[str]) -> KafkaFacts:
        ids = {each: f"id of {each}" for each in topics}
        here = {each: it for each, it in self.logs.items() if each.topic in ids}
        return KafkaFacts(
            CLUSTER, ids, {each: Watermarks(o.low, o.high) for each, o in here.items()}
        )

    def offsets_at(
        self, times: Mapping[TopicPartition, datetime]
    ) -> dict[TopicPartition, int | None]:
        return {each: self.logs[each].first_from(at) for each, at in times.items()}

    def truncated_logs(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, int]:
        return {}


@dataclass(frozen=True)
class Case:
    """What Kafka holds, what the file says, and what the ledger knows.

    ``said`` is what the start says of topics; where it is empty, the start is ``edge``.
    """

    cluster: Cluster
    topics: list[str] | dict[str, Any]
    edge: At
    said: Mapping[str, Said]
    as_text: bool
    newest: Entry | None
    missing: str = "error"

    @property
    def assigned(self) -> dict[str, list[int]]:
        return self.topics.get("assign", {}) if isinstance(self.topics, dict) else {}

    @property
    def has_pattern(self) -> bool:
        return "pattern" in self.topics and isinstance(self.topics, dict)

    def reads(self) -> list[TopicPartition]:
        """The partitions that are there and are to be read, in order."""
        names = self.cluster.names() if self.has_pattern else (self.assigned or self.topics)
        there = [each for each in sorted(self.cluster.logs) if each.topic in names]
        return [e for e in there if e.partition in self.assigned.get(e.topic, [e.partition])]

    def load(self, file: Path, start: str = "", topics: str = "") -> Pipeline:
        """The pipeline of the file, with the topics that are there; the texts are written as they
        are in place of what the case says.
        """
        said = json.dumps(self.said or self.edge, default=datetime.isoformat)
        said = json.dumps(said) if self.as_text and self.said else said
        told = topics or json.dumps(self.topics)
        text = FILE.format(topics=told, missing=self.missing, start=start or said)
        file.write_text(text, encoding="utf-8")
        return with_topics(self.cluster, load(file).pipelines["p"], self.newest)

    def starts(self, pipeline: Pipeline) -> Offsets:
        """Where a run would start. Raises StartUnknown."""
        facts = facts_of(self.cluster, pipeline)
        facts = with_times(self.cluster, facts, pipeline, self.newest)
        return {**start_positions(pipeline, self.newest, facts).position.offsets}


def drawn(dice: random.Random) -> Case:
    """Up to three topics with up to four partitions, small logs, and any start that loads."""
    names = dice.sample(NAMES, dice.randint(1, 3))
    logs = {place(n, each): drawn_log(dice) for each in names for n in range(dice.randint(1, 4))}
    numbers = {each: [p.partition for p in logs if p.topic == each] for each in names}
    topics: list[str] | dict[str, Any] = names
    kind = dice.choice(("list", "pattern", "assign"))
    if kind == "pattern":
        topics = {"pattern": ".*"}
    elif kind == "assign":
        more = dice.choice(([], [5], [5, 7]))
        numbers = {
            each: dice.sample(it, dice.choice((0, len(it))) if more else len(it) // 2 + 1) + more
            for each, it in numbers.items()
        }
        topics = {"assign": numbers}
    said: dict[str, Said] = {}
    for each in dice.sample(names, dice.randint(0, len(names))):
        places = [place(n, each) for n in numbers[each] if dice.random() < 0.9]
        places += [place(9, each)] if kind != "assign" and dice.random() < 0.1 else []
        single = {p.partition: drawn_at(dice, logs.get(p)) for p in places}
        said[each] = single if dice.random() < 0.6 else drawn_at(dice)
    if said and kind == "pattern" and dice.random() < 0.5:
        absent: tuple[Said, ...] = ("latest", {0: 3, 2: SIX})
        said[ABSENT] = dice.choice(absent)
    as_text, newest = dice.random() < 0.2, drawn_entry(dice, logs)
    return Case(Cluster(logs), topics, drawn_at(dice), said, as_text, newest)


def drawn_log(dice: random.Random) -> Log:
    low = dice.choice((0, 0, 3))
    high = low + dice.choice((0, 1, 4, 9))
    end = high + dice.choice((0, 0, 2))  # what an open transaction holds back
    return Log(low, high, tuple(dice.randint(0, 9) for _ in range(low, end)))


def drawn_at(dice: random.Random, log: Log | None = None) -> At:
    """An edge or a time; of one partition an offset, too, often at an end of its log."""
    moment = SIX + timedelta(seconds=dice.randint(-1, 11), microseconds=dice.choice((0, 123_456)))
    whole: list[At] = ["earliest", "latest", moment.astimezone(dice.choice(ZONES))]
    if log is None or dice.random() < 0.3:
        return dice.choice(whole)
    near = [max(0, log.low - 1), log.low, dice.randint(log.low, log.high), log.high, log.high + 1]
    return dice.choice([*near, -2, -1])


def drawn_entry(dice: random.Random, logs: Mapping[TopicPartition, Log]) -> Entry | None:
    """The newest entry of a ledger that knows some of the topics, whole or in part; or none."""
    topics = dict.fromkeys(each.topic for each in logs)
    ways = {each: dice.choice(("whole", "in part", "new")) for each in topics}
    known: Offsets = {}
    for each, log in logs.items():
        whole = ways[each.topic] == "whole" and (log.low > 0 or dice.random() < 0.8)
        if whole or (ways[each.topic] == "in part" and dice.random() < 0.5):
            known[each] = dice.randint(log.low, log.high)
    if not known or dice.random() < 0.4:
        return None
    ranges = [span(at, at, each.partition, each.topic) for each, at in sorted(known.items())]
    ids = {each.topic: f"id of {each.topic}" for each in known}
    assigned = frozenset(each for each in ids if ways[each] == "in part")
    return replace(entry_after(None, *ranges), topics=ids, assigned=assigned)
