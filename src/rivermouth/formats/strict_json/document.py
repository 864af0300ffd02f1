"""The exact parser of one document: bytes to names and raw values.

It uses no stack of Python's, so that the depth of a record cannot exhaust it.

An object is a tuple of pairs (name, value) in their order, an array is a list, a number is a
``Number`` as it is spelt; text, ``True``, ``False`` and ``None`` are as in Python.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder

from rivermouth.formats.strict_json.scalars import JSON_NUMBER, Array, Bad, Number, Object
from rivermouth.formats.strict_json.types import DEPTH

_SPACES = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"true|false|null")
_WORDS = {"true": True, "false": False, "null": None}
_STRINGS = JSONDecoder()
_CLOSING = {"{": "}", "[": "]"}


@dataclass
class _Open:
    """An object or array that is not at its end yet."""

    mark: str
    start: int
    items: list[object] = field(default_factory=list)
    name: str = ""

    def add(self, value: object) -> None:
        self.items.append((self.name, value) if self.mark == "{" else value)

    def closed(self, text: str, end: int) -> Object | Array:
        whole = Object(self.items) if self.mark == "{" else Array(self.items)
        whole.spelt = text[self.start : end]
        return whole


def reason(message: str, place: int) -> str:
    """Why the text is not JSON. ``place`` counts characters from 0."""
    return f"the value is not JSON: {message[0].lower()}{message[1:]} (character {place + 1})"


def parse(text: str) -> Object:
    """The object that the text is, without anything around it. Raises Bad for what is none."""
    stack: list[_Open] = []
    at = 0
    while True:
        at, value = _begun(text, at, stack)
        while value is not _NOTHING:  # it is complete
            if not stack:
                if at != len(text):
                    raise Bad(reason("something stands after the object", at))
                if not isinstance(value, Object):
                    raise Bad("the value is not one JSON object")
                return value
            at, value = _placed(text, at, stack, value)


_NOTHING = object()


def _begun(text: str, at: int, stack: list[_Open]) -> tuple[int, object]:
    """Reads one plain value or the begin of an object or array, which may end at once."""
    mark = text[at : at + 1]
    if mark not in ("{", "["):
        return _plain(text, at)
    if len(stack) == DEPTH:
        raise Bad(f"the value has more than {DEPTH} objects and arrays in each other")
    opened = _Open(mark, at)
    at = _skip(text, at + 1)
    if text[at : at + 1] == _CLOSING[mark]:
        return at + 1, opened.closed(text, at + 1)
    stack.append(opened)
    return (_named(text, at, opened) if mark == "{" else at), _NOTHING


def _placed(text: str, at: int, stack: list[_Open], value: object) -> tuple[int, object]:
    """Puts the value where it belongs and reads the mark after it."""
    top = stack[-1]
    top.add(value)
    at = _skip(text, at)
    mark = text[at : at + 1]
    if mark == ",":
        at = _skip(text, at + 1)
        return (_named(text, at, top) if top.mark == "{" else at), _NOTHING
    if mark == _CLOSING[top.mark]:
        return at + 1, stack.pop().closed(text, at + 1)
    raise Bad(reason(f'"," or "{_CLOSING[top.mark]}" is missing', at))


def _named(text: str, at: int, within: _Open) -> int:
    """Reads a name and the colon after it; returns where the value begins."""
    if text[at : at + 1] != '"':
        raise Bad(reason("a name in double quotes is missing", at))
    at, within.name = _text(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise Bad(reason('":" is missing', at))
    return _skip(text, at + 1)


def _plain(text: str, at: int) -> tuple[int, object]:
    if text[at : at + 1] == '"':
        return _text(text, at)
    if found := JSON_NUMBER.match(text, at):
        return found.end(), Number(found[0])
    if found := _WORD.match(text, at):
        return found.end(), _WORDS[found[0]]
    raise Bad(reason("a value is missing", at))


def _text(text: str, at: int) -> tuple[int, str]:
    try:
        found, end = _STRINGS.raw_decode(text, at)
    except JSONDecodeError as fault:
        raise Bad(reason(fault.msg, fault.pos)) from None
    return end, found


def _skip(text: str, at: int) -> int:
    found = _SPACES.match(text, at)
    return found.end() if found else at


_SPACE = " \t\n\r"
# A pair of halves, or any other escape; an escape of a half alone has a group.
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?:(u[dD][89a-fA-F])|.)",
    re.DOTALL,
)
_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _refuse(name: str) -> None:
    raise Bad(f"the value is not JSON: {name} is not a JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=Number, parse_int=Number, parse_constant=_refuse
)
_QUICK = json.JSONDecoder(parse_float=str, parse_int=str)


FRAMED = "it begins with a zero byte, as framed values do: see source.framing"
_MARKS = {"\ufeff": "; it begins with a byte order mark", "\0": f"; {FRAMED}"}


def read(value: bytes, spelt: bool) -> tuple[object, ...]:
    """The members of the only object of the document. Raises Bad for all that is not one.

    If ``spelt``, objects and arrays know how they are spelt.
    """
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as fault:
        framed = f"; {FRAMED}" if value.startswith(b"\0") else ""
        raise Bad(f"the value is not UTF-8 at byte {fault.start + 1}{framed}") from None
    text = text.strip(_SPACE)
    if not text.startswith("{"):
        marks = (mark for begin, mark in _MARKS.items() if text.startswith(begin))
        raise Bad(f"the value is not one JSON object{next(marks, '')}")
    found = _parsed(text, spelt)
    if _MAYBE_HALF.search(text) and any(each[1] for each in _ESCAPES.finditer(text)):
        raise Bad("the value is not JSON: half of a surrogate pair stands alone")
    return found


def _parsed(text: str, spelt: bool) -> tuple[object, ...]:
    marks = text.count("{") + text.count("[")
    if marks <= (1 if spelt else DEPTH):
        try:
            found, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError as fault:
            raise Bad(reason(fault.msg, fault.pos)) from None
        except RecursionError:  # the stack of the caller is deep already
            return parse(text)
        if end != len(text):
            raise Bad(reason("something stands after the object", end))
        members: tuple[object, ...] = found
        return members
    return parse(text)


def is_one_document(text: str) -> bool:
    """Whether the text is JSON without anything around it, as far as a quick look tells."""
    try:
        return _QUICK.raw_decode(text)[1] == len(text)
    except (ValueError, RecursionError):
        return False
