"""What a replay is asked for, and what it has to know before it reads."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

from rivermouth.config import At, Pipeline, Start
from rivermouth.config.problems import Kind, Refused, quoted, sentence
from rivermouth.config.start import read_start
from rivermouth.errors import ConfigError, ReplayRefused
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.facts import assess_by, facts_of, with_topics
from rivermouth.protocol.assess import Assessment
from rivermouth.protocol.commits import Recorded
from rivermouth.protocol.entry import Entry
from rivermouth.protocol.kafka_facts import KafkaFacts
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.replay.ranges import FirstOffsets
from rivermouth.replay.records import read
from rivermouth.run.assembly import Assembly
from rivermouth.warehouse.ledger import audit_ledger
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.write.evaluation import persisted

FORMS = (
    "earliest, a time with its zone as 2026-11-01T06:00:00Z, topic:partition:offset with commas"
    ' between several, or {"topic": {"partition": offset}}'
)
_PLACE = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,10}):(\d{1,18})")


@dataclass(frozen=True)
class Bound:
    """Where a replay begins or ends: ``start`` says it of the partitions that it names, or of all.

    ``text`` is what was written.
    """

    text: str
    start: Start

    def of(self, place: TopicPartition) -> At | None:
        """What is said of a partition; None: it is not asked for."""
        if self.start.offsets and place.topic not in self.start.offsets:
            return None
        return self.start.of(place.topic, place.partition)

    @property
    def is_earliest(self) -> bool:
        """Whether it is the first record of every partition."""
        return not self.start.offsets and self.start.edge == "earliest"

    @property
    def named(self) -> frozenset[TopicPartition]:
        """The partitions that it names."""
        return frozenset(
            TopicPartition(topic, partition)
            for topic in self.start.offsets
            for partition in self.start.named(topic)
        )


def read_bound(option: str, text: str) -> Bound:
    """What ``--from`` or ``--to`` says. Raises ConfigError."""
    parts = [each.strip() for each in text.split(",")]
    places = [_PLACE.fullmatch(each) for each in parts]
    if all(places):
        offsets: dict[str, dict[int, At]] = {}
        for each in places:
            if each is not None:
                topic, partition, offset = each.groups()
                of_topic = offsets.setdefault(topic, {})
                if int(partition) in of_topic:
                    twice = f"it names the partition {TopicPartition(topic, int(partition))} again"
                    raise ConfigError((f"{option} {text}: {twice} — name each partition once",))
                of_topic[int(partition)] = int(offset)
        return Bound(text, Start(offsets=offsets))
    try:
        start = read_start(text)
    except Refused as refused:
        raise ConfigError(tuple(_refusals(option, text, refused))) from None
    if text.lstrip().startswith("{"):
        bare = [topic for topic, at in start.offsets.items() if at == {}]
        if bare or not start.offsets:
            what = f"no partition of {', '.join(bare)}" if bare else "no topic"
            raise ConfigError((f"{option} {text}: it names {what} — write {FORMS}",))
    return Bound(text, start)


def _refusals(option: str, text: str, refused: Refused) -> Iterator[str]:
    """What is named twice, or else the forms that there are."""
    twice = [each for each in refused.faults if each.kind is Kind.DUPLICATE_KEY]
    for each in twice:
        said = sentence(each, ".".join(map(str, each.path)), "", quoted(each.found), "")
        yield f"{option} {text}: {said}"
    if not twice:
        yield f"{option} {text}: write {FORMS}"


def times_of(bound: Bound, position: Position) -> dict[TopicPartition, datetime]:
    """The partitions whose offsets are to be found by a time."""
    asked = {each: bound.of(each) for each in position}
    return {each: at for each, at in asked.items() if isinstance(at, datetime)}


def asked_ranges(
    begin: Bound,
    end: Bound | None,
    position: Position,
    earliest: Mapping[TopicPartition, int],
    begins: FirstOffsets,
    ends: FirstOffsets,
) -> tuple[OffsetRange, ...]:
    """The ranges from ``begin`` to ``end``, or to the position, one for each partition asked for.

    ``earliest`` is where the first record is that a replay may read. ``begins`` and ``ends`` are
    the offsets of the times. What a time or ``earliest`` names, and may not be read, is left out;
    of an offset it is an error. Raises ReplayRefused.
    """
    _check_named(begin, end, position)
    found = []
    for place in position:
        at = begin.of(place)
        if at is None:
            continue
        until = end.of(place) if end is not None else None
        stands = position.get(place) or 0
        first = _offset(place, at, begins, stands, earliest.get(place, 0))
        last = stands if until is None else _offset(place, until, ends, stands, 0)
        if last < first:
            if not isinstance(at, int) or not isinstance(until, int):
                last = first
            else:
                raise ReplayRefused(
                    "a range ends before it begins",
                    found=f"{place} from {first} to {last}",
                    remedy="Correct --from or --to",
                )
        found.append(OffsetRange(place, first, last))
    return tuple(found)


def _check_named(begin: Bound, end: Bound | None, read: Position) -> None:
    """Raise ReplayRefused for partitions and offsets that the pipeline has not read."""
    for bound in (begin, *([end] if end is not None else [])):
        topics = {each.topic for each in read}
        unread = [str(each) for each in sorted(bound.named) if each not in read.offsets]
        unread += [each for each in bound.start.offsets if each not in topics]
        if unread:
            raise ReplayRefused(
                "the pipeline has not read that",
                expected=", ".join(map(str, read)) or "a pipeline that has run",
                found=", ".join(dict.fromkeys(unread)),
                remedy="Name partitions that it has read: rivermouth status shows them",
            )
        beyond = [
            f"{each} at {at}, read up to {read.get(each)}"
            for each in sorted(bound.named)
            if isinstance(at := bound.of(each), int) and at > (read.get(each) or 0)
        ]
        if beyond:
            raise ReplayRefused(
                "offsets that the pipeline has not read yet",
                expected="offsets up to its position",
                found="; ".join(beyond),
                remedy="A run reads them: rivermouth run",
            )


def _offset(place: TopicPartition, at: At, times: FirstOffsets, stands: int, begin: int) -> int:
    if isinstance(at, int):
        return at
    if isinstance(at, datetime):
        by_time = times.get(place)
        return stands if by_time is None else min(max(by_time, begin), stands)
    return begin if at == "earliest" else stands


@dataclass(frozen=True)
class ReplayFacts:
    """One pipeline, with the topics that its pattern matches now; ``entries`` are in effect."""

    pipeline: Pipeline
    kafka: Kafka
    facts: KafkaFacts
    found: Assessment
    newest: Entry
    entries: Sequence[Recorded]

    @property
    def where(self) -> str:
        """Names the pipeline in messages."""
        return f"{self.pipeline.name} {self.pipeline.target.table}"

    @property
    def position(self) -> Position:
        """Where the pipeline stands in the partitions that it reads."""
        stands = self.newest.position.offsets.items()
        return Position({each: offset for each, offset in stands if self.facts.tell_of(each)})

    def asked(
        self, begin: Bound, end: Bound | None, earliest: Mapping[TopicPartition, int]
    ) -> tuple[OffsetRange, ...]:
        """The ranges that are asked for; ``earliest`` is where what may be read begins."""
        position = self.position
        times = [times_of(each, position) if each else {} for each in (begin, end)]
        begins, ends = (self.kafka.offsets_at(each) if each else {} for each in times)
        return asked_ranges(begin, end, position, earliest, begins, ends)


def replay_facts(pipeline: Pipeline, store: LedgerStore, kafka: Kafka) -> ReplayFacts:
    """All that a run would look at, and the whole log. Raises the Halt that a run would meet."""
    ledger = audit_ledger(store, pipeline)
    if ledger.newest is None and not ledger.history.faults:
        raise ReplayRefused(
            "the pipeline has read nothing yet",
            where=pipeline.name,
            found="no ledger entry",
            remedy="A run reads its topics: rivermouth run",
        )
    pipeline = with_topics(kafka, pipeline, ledger.newest)
    facts = facts_of(kafka, pipeline)
    found = assess_by(kafka, facts, ledger, pipeline, time.time())
    if found.halt is not None:
        raise found.halt
    if ledger.newest is None:
        raise RuntimeError("a ledger without an entry was assessed as sound")
    effective = ledger.history.effective_sequences(ledger.entries)
    entries = [each for each in ledger.entries if each.entry.sequence in effective]
    return ReplayFacts(pipeline, kafka, facts, found, ledger.newest, entries)


def decoded(
    shared: Assembly, pipeline: str, ranges: Sequence[OffsetRange]
) -> AbstractContextManager[DataFrame]:
    """The records of ``ranges``, decoded as the pipeline does it, and kept: Kafka is read once."""
    rows = read(shared.session, shared.config, ranges, pipeline, secrets=shared.secrets)
    return persisted(rows, None)
