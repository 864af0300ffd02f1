"""Which offsets a replay is asked for: from text to ranges. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rivermouth.config import At, Start
from rivermouth.config.problems import Kind, Refused, quoted, sentence
from rivermouth.config.start import read_start
from rivermouth.errors import ConfigError, ReplayRefused
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition

FORMS = (
    "earliest, a time with its zone as 2026-11-01T06:00:00Z, topic:partition:offset with commas"
    ' between several, or {"topic": {"partition": offset}}'
)
_PLACE = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,10}):(\d{1,18})")
Times = Mapping[TopicPartition, int | None]
"""The first offset of each partition from a time on; None: no record is that young."""


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


@dataclass(frozen=True)
class Known:
    """What is known of the partitions: where the pipeline stands, and where the first record is
    that a replay may read.
    """

    position: Position
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)


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
    begin: Bound, end: Bound | None, known: Known, begins: Times, ends: Times
) -> tuple[OffsetRange, ...]:
    """The ranges from ``begin`` to ``end``, or to the position, one for each partition asked for.

    ``begins`` and ``ends`` are the offsets of their times. What a time or ``earliest`` names, and
    may not be read, is left out; of an offset it is an error. Raises ReplayRefused.
    """
    _check_named(begin, end, known)
    found = []
    for place in known.position:
        at = begin.of(place)
        if at is None:
            continue
        until = end.of(place) if end is not None else None
        stands = known.position.get(place) or 0
        first = _offset(place, at, begins, stands, known.begins.get(place, 0))
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


def _check_named(begin: Bound, end: Bound | None, known: Known) -> None:
    """Raise ReplayRefused for partitions and offsets that the pipeline has not read."""
    read = known.position
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


def _offset(place: TopicPartition, at: At, times: Times, stands: int, begin: int) -> int:
    if isinstance(at, int):
        return at
    if isinstance(at, datetime):
        by_time = times.get(place)
        return stands if by_time is None else min(max(by_time, begin), stands)
    return begin if at == "earliest" else stands
