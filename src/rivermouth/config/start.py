"""Where a pipeline without a ledger starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rivermouth.config.problems import Fault, Kind, Path, Refused, checked, closest
from rivermouth.config.substitute import EnvText

Edge = Literal["earliest", "latest"]
_EDGES: dict[object, Edge] = {"earliest": "earliest", "latest": "latest"}
_SPARK_EDGES: dict[int, Edge] = {-2: "earliest", -1: "latest"}
_FORMS = "earliest, latest, or {topic: {partition: offset}}"


@dataclass(frozen=True)
class Start:
    """``edge`` for every partition, or ``offsets`` for some and earliest for the others."""

    edge: Edge = "earliest"
    offsets: Mapping[str, Mapping[int, int | Edge]] = field(default_factory=dict, hash=False)

    def of(self, topic: str, partition: int) -> int | Edge:
        """The first offset to read of a partition, or the end of the log at which to find it."""
        return self.offsets.get(topic, {}).get(partition, self.edge)


def read_start(value: object) -> Start:
    """From ``earliest``, ``latest``, a mapping, or Spark's JSON text; raises ``Refused``.

    As in Spark, the offsets -2 and -1 mean earliest and latest.
    """
    if isinstance(value, Start):
        return value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _json(value)
    if isinstance(value, Mapping):
        return Start(offsets=_topics(value))
    if isinstance(value, str) and value in _EDGES:
        return Start(edge=_EDGES[value])
    suggestion = closest(value, ("earliest", "latest")) if isinstance(value, str) else ""
    kind = Kind.BAD_VALUE if isinstance(value, str) else Kind.WRONG_TYPE
    raise Refused(Fault(kind, f"{{path}} must be {_FORMS}, not {{value}}", suggestion=suggestion))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"{{path}} must be {_FORMS}; the text is not JSON"
        raise Refused(Fault(Kind.BAD_VALUE, message)) from error


def _topics(value: Mapping[object, object]) -> dict[str, dict[int, int | Edge]]:
    faults: list[Fault] = []
    topics: dict[str, dict[int, int | Edge]] = {}
    for topic, partitions in value.items():
        name = str(topic)
        if not isinstance(partitions, Mapping):
            message = "{path} must be a mapping {partition: offset}, not {value}"
            faults.append(Fault(Kind.WRONG_TYPE, message, path=(name,)))
            continue
        topics[name] = {}
        for partition, offset in partitions.items():
            try:
                number = _number(partition, name)
                topics[name][number] = _offset(offset, (name, str(partition)))
            except Refused as refused:
                faults += refused.faults
    return checked(topics, faults)


def _number(partition: object, topic: str) -> int:
    text = str(partition)
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31):
        message = "{path} names the partition {found}, which is not a number"
        path: Path = (topic, text)
        raise Refused(Fault(Kind.BAD_VALUE, message, text, path=path, at_key=True))
    return int(text)


def _offset(value: object, path: Path) -> int | Edge:
    value = whole(value)
    if isinstance(value, str) and value in _EDGES:
        return _EDGES[value]
    if isinstance(value, int) and not isinstance(value, bool):
        if value in _SPARK_EDGES:
            return _SPARK_EDGES[value]
        if 0 <= value < 2**63:
            return value
    message = "{path} must be an offset from 0, earliest or latest, not {value}"
    raise Refused(Fault(Kind.BAD_VALUE, message, path=path))


def whole(value: object) -> object:
    """The whole number that a variable of the environment spells; anything else as it is."""
    if isinstance(value, EnvText):
        digits = value.strip().removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= 19:
            return int(value)
    return value
