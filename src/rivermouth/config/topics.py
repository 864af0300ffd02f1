"""Which topics a source reads: those that it names, some partitions of them, or a pattern's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rivermouth.config.problems import Fault, KeyPath, Kind, Refused, checked, closest, repeated
from rivermouth.config.secret import whole
from rivermouth.config.settings import REFERENCE, Schema

_LEGAL = r"[A-Za-z0-9._-]{1,249}"
LETTERS = "letters, digits, dot, _ and -, at most 249"
"""What the name of a topic is made of."""
_FIX = f"use {LETTERS}"
_INTERNAL = "__"
_PATTERN, _ASSIGN = "pattern", "assign"

SCHEMA: Schema = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
        {
            "type": "object",
            "properties": {_PATTERN: {"anyOf": [{"type": "string", "minLength": 1}, REFERENCE]}},
            "required": [_PATTERN],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                _ASSIGN: {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "type": "array",
                        "items": {"anyOf": [{"type": "integer", "minimum": 0}, REFERENCE]},
                        "uniqueItems": True,
                        "minItems": 1,
                    },
                }
            },
            "required": [_ASSIGN],
            "additionalProperties": False,
        },
    ]
}
"""How it is written in the file, as JSON Schema."""


@dataclass(frozen=True)
class Topics(Collection[str]):
    """The names of topics, in order; with a ``pattern`` those that matched it when Kafka was asked.

    The pattern is a regular expression of Python. It matches whole names, and none that begins
    with ``__``: these are Kafka's own. Of a topic in ``assigned`` only these partitions are read;
    then all ``names`` are there.
    """

    names: tuple[str, ...] = ()
    pattern: str = ""
    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def take(self, name: str) -> bool:
        """Whether a topic of this name is read where it exists."""
        if not self.pattern:
            return name in self.names
        return not name.startswith(_INTERNAL) and bool(re.fullmatch(self.pattern, name))

    def has(self, name: str, partition: int) -> bool:
        """Whether a partition of a topic is read, if the topic is."""
        return name not in self.assigned or partition in self.assigned[name]

    def reads(self, name: str, partition: int) -> bool:
        """Whether a partition is read, of the topics that are named or matched."""
        return name in self and self.has(name, partition)

    def among(self, existing: Iterable[str]) -> Topics:
        """The same pattern with the names that it matches, in order. Only for a pattern."""
        return replace(self, names=tuple(sorted(filter(self.take, existing))))


def read_topics(value: object) -> Topics:
    """From a list of names, ``{pattern: …}`` or ``{assign: …}``; raises ``Refused``."""
    if isinstance(value, Topics):
        return value
    if isinstance(value, Mapping) and _ASSIGN in value and _PATTERN in value:
        message, fix = "{path} has both pattern and assign", "write one of them"
        raise Refused(*_strange_keys(value), Fault(Kind.BAD_VALUE, message, fix=fix))
    if isinstance(value, Mapping) and _ASSIGN in value:
        assigned = _assigned(value)
        return Topics(tuple(assigned), assigned=assigned)
    if isinstance(value, Mapping):
        return Topics(pattern=_pattern(value))
    if isinstance(value, (list, tuple)):
        return Topics(_names(value))
    message = "{path} must be a list, not {value}"
    fix = "write [a, b], {pattern: …} or {assign: {a: [0, 1]}}"
    raise Refused(Fault(Kind.WRONG_TYPE, message, fix=fix))


def _names(value: Collection[object]) -> tuple[str, ...]:
    if not value:
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is empty", fix="name at least one topic"))
    names = tuple(each for each in value if isinstance(each, str))
    faults = list(repeated(map(str, value)))
    for index, name in enumerate(value):
        if not isinstance(name, str):
            message, fix = "{path} must be text, not {value}", "put it in quotes"
            faults.append(Fault(Kind.WRONG_TYPE, message, fix=fix, path=(index,)))
        elif not is_legal(name):
            message = "{path} is not a legal topic name: {value}"
            faults.append(Fault(Kind.BAD_VALUE, message, fix=_FIX, path=(index,)))
    return checked(names, faults)


def is_legal(name: str) -> bool:
    """Whether a topic can have this name."""
    return re.fullmatch(_LEGAL, name) is not None and name not in (".", "..")


def _assigned(value: Mapping[object, object]) -> dict[str, tuple[int, ...]]:
    faults = [*_strange_keys(value)]
    listed = value[_ASSIGN]
    if not isinstance(listed, Mapping) or not listed:
        must = "{path} must name the partitions of each topic, not {value}"
        message = "{path} is empty" if listed == {} else must
        fix = "for example {orders: [0, 1], payments: [3]}"
        raise Refused(*faults, Fault(Kind.BAD_VALUE, message, fix=fix, path=(_ASSIGN,)))
    assigned: dict[str, tuple[int, ...]] = {}
    for topic, numbers in listed.items():
        name, path = str(topic), (_ASSIGN, str(topic))
        if not is_legal(name):
            message = "{path} is not a legal topic name: {found}"
            fault = Fault(Kind.BAD_VALUE, message, name, fix=_FIX, path=path, at_key=True)
            faults.append(fault)
        try:
            assigned[name] = _numbers(numbers, path)
        except Refused as refused:
            faults += refused.faults
    return checked(assigned, faults)


def _numbers(value: object, path: KeyPath) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        message, fix = "{path} must be a list of partitions, not {value}", "for example [0, 1]"
        raise Refused(Fault(Kind.WRONG_TYPE, message, fix=fix, path=path))
    if not value:
        fix = "name at least one partition, for example [0, 1]"
        raise Refused(Fault(Kind.BAD_VALUE, "{path} is empty", fix=fix, path=path))
    faults: list[Fault] = []
    numbers: list[int] = []
    for index, each in enumerate(map(whole, value)):
        here: KeyPath = (*path, index)
        if not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < 2**31:
            message = "{path} must be the number of a partition, not {value}"
            faults.append(Fault(Kind.BAD_VALUE, message, path=here))
        elif each in numbers:
            message = "{path} names the partition {value} again"
            faults.append(Fault(Kind.BAD_VALUE, message, path=here))
        else:
            numbers.append(each)
    return checked(tuple(numbers), faults)


def _strange_keys(value: Mapping[object, object]) -> Iterator[Fault]:
    for key in value:
        if key not in (_PATTERN, _ASSIGN):
            message = "{path} is unknown: topics is a list, or a mapping with pattern or assign"
            meant, path = closest(str(key), [_PATTERN, _ASSIGN]), (str(key),)
            yield Fault(Kind.UNKNOWN_KEY, message, "", meant, path=path, at_key=True)


def _pattern(value: Mapping[object, object]) -> str:
    faults = [*_strange_keys(value)]
    text = value.get(_PATTERN)
    if not isinstance(text, str) or not text:
        message = "{path} needs a pattern: a regular expression as text"
        faults.append(Fault(Kind.BAD_VALUE, message, fix='for example {pattern: "orders_.*"}'))
        raise Refused(*faults)
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        message = f"{{path}} is no regular expression: {{value}}; {error}"
        faults.append(Fault(Kind.BAD_VALUE, message, path=(_PATTERN,)))
    return checked(text, faults)
