"""Where a pipeline without a ledger starts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Literal

from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked, closest
from rivermouth.config.secret import whole
from rivermouth.config.settings import REFERENCE, Schema

Edge = Literal["earliest", "latest"]
Whole = Edge | datetime
"""Where all partitions of a topic start: at an end of their logs, or at a time."""
At = int | Whole
"""Where a partition starts: ``Whole``, or at an offset."""
_EDGES: dict[object, Edge] = {"earliest": "earliest", "latest": "latest"}
_SPARK_EDGES: dict[int, Edge] = {-2: "earliest", -1: "latest"}
_FORMS = "earliest, latest, a time, or one of these by topic, or {topic: {partition: offset}}"
LAST = "a time up to 9999-12-31T23:59:59Z"
"""What a time is that UTC can write."""
_ZONE = "write a time with its zone, for example 2026-11-01T06:00:00Z"

_EDGE: Schema = {"enum": ["earliest", "latest"]}
_TIME_TEXT = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{3}([0-9]{3})?)?)?)?"
)
_TIME: Schema = {"type": "string", "pattern": f"^{_TIME_TEXT}(Z|[+-][0-9]{{2}}:[0-9]{{2}})$"}
_OFFSET: Schema = {"anyOf": [{"type": "integer", "minimum": -2}, _EDGE, _TIME, REFERENCE]}
_OFFSETS: Schema = {
    "type": "object",
    "patternProperties": {"^[0-9]+$": _OFFSET},
    "additionalProperties": False,
}
SCHEMA: Schema = {
    "anyOf": [
        _EDGE,
        _TIME,
        REFERENCE,
        {"type": "string", "pattern": r"^\s*\{"},
        {"type": "object", "additionalProperties": {"anyOf": [_EDGE, _TIME, REFERENCE, _OFFSETS]}},
    ]
}
"""How it is written in the file, as JSON Schema."""


@dataclass(frozen=True)
class Start:
    """``edge`` for every topic that is not in ``offsets``.

    ``offsets`` says it for all of a topic, or for each of its partitions. Times have a zone.
    """

    edge: Whole = "earliest"
    offsets: Mapping[str, Whole | Mapping[int, At]] = field(default_factory=dict, hash=False)

    def of(self, topic: str, partition: int) -> At | None:
        """The first offset to read of a partition, or the end of the log or the time at which to
        find it; None where other partitions of its topic are named, and it is not.
        """
        at = self.offsets.get(topic, self.edge)
        return at.get(partition) if isinstance(at, Mapping) else at

    def named(self, topic: str) -> Mapping[int, At]:
        """What is said of single partitions of a topic."""
        at = self.offsets.get(topic)
        return at if isinstance(at, Mapping) else {}


def read_start(value: object) -> Start:
    """From ``earliest``, ``latest``, a time, a mapping, or Spark's JSON text; raises ``Refused``.

    As in Spark, the offsets -2 and -1 mean earliest and latest. No topic and no partition may be
    named twice.
    """
    if isinstance(value, Start):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _json(value)
    if isinstance(value, Mapping):
        return Start(offsets=_topics(value))
    return Start(edge=_whole(value, (), _FORMS))


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        message = f"{{path}} must be {_FORMS}; the text is not JSON"
        raise Refused(Fault(Kind.BAD_VALUE, message)) from error


class _Object(dict[object, object]):
    """An object of JSON, with the names that it gives more than once."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counted = Counter(name for name, _ in pairs)
        self.again = [name for name, times in counted.items() if times > 1]


def _topics(value: Mapping[object, object]) -> dict[str, Whole | dict[int, At]]:
    faults = [_again("topic", name, (name,)) for name in _repeats(value)]
    topics: dict[str, Whole | dict[int, At]] = {}
    for topic, at in value.items():
        name = str(topic)
        try:
            if isinstance(at, Mapping):
                topics[name] = _partitions(name, at)
            else:
                forms = "earliest, latest, a time, or a mapping {partition: offset}"
                topics[name] = _whole(at, (name,), forms)
        except Refused as refused:
            faults += refused.faults
    return checked(topics, faults)


def _partitions(topic: str, value: Mapping[object, object]) -> dict[int, At]:
    faults = [_again("partition", name, (topic, name)) for name in _repeats(value)]
    partitions: dict[int, At] = {}
    for partition, offset in value.items():
        try:
            number = _number(partition, topic)
            if number in partitions:
                raise Refused(_again("partition", str(partition), (topic, str(partition))))
            partitions[number] = _offset(offset, (topic, str(partition)))
        except Refused as refused:
            faults += refused.faults
    return checked(partitions, faults)


def _whole(value: object, path: KeyPath, forms: str) -> Whole:
    if isinstance(value, str) and (at := _EDGES.get(value) or _time(value, path)):
        return at
    suggestion = closest(value, ("earliest", "latest")) if isinstance(value, str) else ""
    kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    message = f"{{path}} must be {forms}, not {{value}}"
    raise Refused(Fault(kind, message, suggestion=suggestion, path=path))


def _time(text: str, path: KeyPath) -> datetime | None:
    """None: it does not look like a time.

    Raises Refused without a zone, before 1970, and after the last time that UTC can write.
    """
    if not re.match(_TIME_TEXT, text, re.ASCII):
        return None
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if at.tzinfo is None:
        message = "{path} is a time without a zone: {value}"
        raise Refused(Fault(Kind.BAD_VALUE, message, path=path, fix=_ZONE))
    if at.timestamp() < 0:  # Kafka takes negative numbers for the ends of a log
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is before 1970: {value}", path=path))
    if is_beyond_utc(at):
        message = "{path} is after the year 9999 in UTC: {value}"
        raise Refused(Fault(Kind.BAD_VALUE, message, path=path, fix=f"write {LAST}"))
    return at


def is_beyond_utc(at: datetime) -> bool:
    """Whether a time with a zone, from 1970 on, is one that cannot be written in UTC."""
    try:
        at.astimezone(timezone.utc)
    except OverflowError:
        return True
    return False


def _number(partition: object, topic: str) -> int:
    text = str(partition)
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31):
        message = "{path} names the partition {found}, which is not a number"
        path: KeyPath = (topic, text)
        raise Refused(Fault(Kind.BAD_VALUE, message, text, path=path, at_key=True))
    return int(text)


def _repeats(value: Mapping[object, object]) -> list[str]:
    return value.again if isinstance(value, _Object) else []


def _again(what: str, name: str, path: KeyPath) -> Fault:
    message = f"{{path}} names the {what} {{found}} again"
    return Fault(
        Kind.DUPLICATE_KEY, message, name, path=path, fix=f"name each {what} once", at_key=True
    )


def _offset(value: object, path: KeyPath) -> At:
    value = whole(value)
    if isinstance(value, str) and (at := _EDGES.get(value) or _time(value, path)):
        return at
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _SPARK_EDGES:
            return _SPARK_EDGES[value]
        if 0 <= value < 2**63:
            return value
    message = "{path} must be an offset from 0, earliest, latest or a time, not {value}"
    raise Refused(Fault(Kind.BAD_VALUE, message, path=path))
