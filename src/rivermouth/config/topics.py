"""Which topics a source reads: those that it names, or those that a pattern matches."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rivermouth.config.problems import Fault, Kind, Refused, checked, closest, repeated
from rivermouth.config.written import REFERENCE, Schema

_LEGAL = r"[A-Za-z0-9._-]{1,249}"
_INTERNAL = "__"
_PATTERN = "pattern"

SCHEMA: Schema = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
        {
            "type": "object",
            "properties": {_PATTERN: {"anyOf": [{"type": "string", "minLength": 1}, REFERENCE]}},
            "required": [_PATTERN],
            "additionalProperties": False,
        },
    ]
}
"""How it is written in the file, as JSON Schema."""


@dataclass(frozen=True)
class Topics(Collection[str]):
    """The names of topics, in order; with a ``pattern`` those that matched it when Kafka was asked.

    The pattern is a regular expression of Python. It matches whole names, and none that begins
    with ``__``: these are Kafka's own.
    """

    names: tuple[str, ...] = ()
    pattern: str = ""

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

    def among(self, existing: Iterable[str]) -> Topics:
        """The same pattern with the names that it matches, in order. Only for a pattern."""
        return replace(self, names=tuple(sorted(filter(self.take, existing))))


def read_topics(value: object) -> Topics:
    """From a list of names or ``{pattern: …}``; raises ``Refused``."""
    if isinstance(value, Topics):
        return value
    if isinstance(value, Mapping):
        return Topics(pattern=_pattern(value))
    if isinstance(value, (list, tuple)):
        return Topics(_names(value))
    message = "{path} must be a list, not {value}"
    fix = "write [a, b], or {pattern: …}"
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
        elif not re.fullmatch(_LEGAL, name) or name in (".", ".."):
            message = "{path} is not a legal topic name: {value}"
            fix = "use letters, digits, dot, _ and -, at most 249"
            faults.append(Fault(Kind.BAD_VALUE, message, fix=fix, path=(index,)))
    return checked(names, faults)


def _pattern(value: Mapping[object, object]) -> str:
    faults: list[Fault] = []
    for key in value:
        if key != _PATTERN:
            message = "{path} is unknown: topics is a list, or a mapping with pattern"
            meant, path = closest(str(key), [_PATTERN]), (str(key),)
            faults.append(Fault(Kind.UNKNOWN_KEY, message, "", meant, path=path, at_key=True))
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
