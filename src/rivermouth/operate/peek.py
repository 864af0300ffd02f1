"""Single records of a topic, raw or as a pipeline decodes them. Starts no JVM, joins no group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from confluent_kafka import Message

from rivermouth.config import Config, Pipeline, Secrets
from rivermouth.formats.arrow import SKIPPED
from rivermouth.kafka.client import Kafka
from rivermouth.operate.facts import connected
from rivermouth.operate.sample import decoded_messages
from rivermouth.operate.sql import json_value
from rivermouth.protocol.offsets import TopicPartition, Watermarks

_LOOK_EVERY_S = 0.5
_AT_ONCE = 500
"""So many records of each partition are read at a time, while somebody looks for a key."""


@dataclass(frozen=True)
class From:
    """Where to begin in each partition: at the first record from a time on, at an ``offset``, or so
    many records before its end (negative). Neither: the newest records of the topic.
    """

    moment: datetime | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Peek:
    """What to show: ``most`` records (None: all), only those with the ``key`` if one is given.

    ``pipeline`` decodes them; None: they are shown raw.
    """

    topic: str
    most: int | None = 20
    begin: From = From()
    key: bytes | None = None
    pipeline: Pipeline | None = None


def peek(config: Config, asked: Peek, secrets: Secrets) -> Iterator[dict[str, Any]]:
    """The records, each as a JSON object; the newest ones, or those from where it begins.

    They are in the order of their times, but those of a large topic come in parts. ``value`` is the
    decoded row, or text where nobody decodes; bytes that are no text stand in base64 under
    ``value_base64``, and so do keys. ``bad`` says why a record would go to quarantine, ``no_row``
    that it makes no row. Raises SourceError.
    """
    kafka = connected(config, secrets)
    marks = kafka.facts([asked.topic]).watermarks
    newest = asked.begin == From() and asked.most is not None
    kept, left = list[Message](), asked.most
    for each in _portions(asked, _starts(kafka, asked, marks), marks):
        found = sorted(_wanted(kafka.records_within(each), asked), key=_order)
        if newest:
            kept = sorted([*kept, *found], key=_order)[-(asked.most or 0) :]
            continue
        found = found[:left]
        yield from _shown(config, asked, found, secrets)
        left = None if left is None else left - len(found)
        if left == 0:
            return
    yield from _shown(config, asked, kept, secrets)


def follow(
    config: Config,
    asked: Peek,
    secrets: Secrets,
    say: Callable[[dict[str, Any]], object],
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Say each record that comes from now on, until somebody interrupts it."""
    kafka = connected(config, secrets)
    at = {place: each.high for place, each in kafka.facts([asked.topic]).watermarks.items()}
    while True:
        marks = kafka.facts([asked.topic]).watermarks
        new = {
            place: (at.get(place, its.low), its.high)
            for place, its in marks.items()
            if at.get(place, its.low) < its.high
        }
        found = sorted(_wanted(kafka.records_within(new), asked), key=_order)
        for each in _shown(config, asked, found, secrets):
            say(each)
        at |= {place: until for place, (_, until) in new.items()}
        wait(_LOOK_EVERY_S)


def _starts(
    kafka: Kafka, asked: Peek, marks: Mapping[TopicPartition, Watermarks]
) -> dict[TopicPartition, int]:
    begin = asked.begin
    if begin.moment is not None:
        found = kafka.offsets_at(dict.fromkeys(marks, begin.moment))
        return {
            place: its.high if found[place] is None else found[place] or 0
            for place, its in marks.items()
        }
    offset = begin.offset
    if offset is None and (asked.key is not None or asked.most is None):
        offset = 0
    elif offset is None:
        offset = -(asked.most or 0)
    return {
        place: min(max(its.low, its.high + offset if offset < 0 else offset), its.high)
        for place, its in marks.items()
    }


Range = tuple[int, int]


def _portions(
    asked: Peek, starts: Mapping[TopicPartition, int], marks: Mapping[TopicPartition, Watermarks]
) -> Iterator[dict[TopicPartition, Range]]:
    """The ranges to read, in steps: who looks for some records need not read all."""
    at = dict(starts)
    step = _AT_ONCE if asked.key is not None or asked.most is None else max(asked.most, 1)
    while True:
        some = {
            place: (start, min(start + step, marks[place].high))
            for place, start in at.items()
            if start < marks[place].high
        }
        if not some:
            return
        yield some
        at |= {place: until for place, (_, until) in some.items()}


def _wanted(messages: Sequence[Message], asked: Peek) -> list[Message]:
    return [each for each in messages if asked.key is None or each.key() == asked.key]


def _order(each: Message) -> tuple[int, str, int, int]:
    return (
        each.timestamp()[1],
        str(each.topic()),
        int(each.partition() or 0),
        int(each.offset() or 0),
    )


def _shown(
    config: Config, asked: Peek, messages: Sequence[Message], secrets: Secrets
) -> list[dict[str, Any]]:
    found = [_place(each) for each in messages]
    if asked.pipeline is None or not messages:
        return [
            facts | _bytes("value", each.value())
            for facts, each in zip(found, messages, strict=True)
        ]
    decoded = decoded_messages(config, asked.pipeline, messages, secrets)
    told = zip(found, messages, decoded["row"], decoded["code"], decoded["reason"], strict=True)
    return [facts | _decoded(each, *of) for facts, each, *of in told]


def _decoded(each: Message, row: Any, code: str | None, reason: str | None) -> dict[str, Any]:
    if code is None:
        return {"value": json_value(row)}
    if code == SKIPPED:
        return {"value": None, "no_row": True}
    return {"bad": f"{code} {reason or ''}".strip()} | _bytes("value", each.value())


def _place(each: Message) -> dict[str, Any]:
    moment = datetime.fromtimestamp(each.timestamp()[1] / 1000, timezone.utc)
    return {
        "topic": each.topic(),
        "partition": each.partition(),
        "offset": each.offset(),
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        **_bytes("key", each.key()),
    }


def _bytes(name: str, value: bytes | str | None) -> dict[str, Any]:
    """As text, or in base64 under another name where it is none."""
    if value is None or isinstance(value, str):
        return {name: value}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": json_value(value)}
