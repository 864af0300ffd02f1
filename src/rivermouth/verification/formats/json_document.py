"""The text of a JSON document to values, by RFC 8259 and the further rules of docs/json.md.

Python's scanner in C does the work. What it takes beyond RFC 8259 is refused here: ``NaN`` and the
like, and half of a pair of surrogates. Values: ``tuple`` of pairs for an object, since a name may
come twice; list, str, int, bool, None; ``Spelt`` for a number with a point or an exponent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa

from rivermouth.verification.formats.reader import Undecodable

_DEPTH = 500
_SPACE = " \t\r\n"
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETS = re.compile(r"[\[\]{}]")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")

Pairs = tuple[tuple[str, Any], ...]
Scan = Callable[[str, int], tuple[Any, int]]
"""Gives the value that begins at a place of a text, and where it ends."""


class Spelt(str):
    """A value as it is spelt in the record: a number, or what a column of text is to take."""

    __slots__ = ()


def _no_json(word: str) -> NoReturn:
    raise Undecodable(f"not JSON: {word}")


def _scanner(**hooks: Any) -> Scan:
    decoder = json.JSONDecoder(
        object_pairs_hook=tuple, parse_float=Spelt, parse_constant=_no_json, **hooks
    )
    return decoder.raw_decode


_FAST = _scanner()
SPELT = _scanner(parse_int=Spelt)
"""What scans a value; whole numbers are ``Spelt``, too."""


def text_of(value: bytes) -> str:
    """The text of a document that may be one object, which it begins with.

    Raises Undecodable where it is not UTF-8, begins otherwise or is too deep.
    """
    try:
        text = value.decode()
    except UnicodeDecodeError as fault:
        raise Undecodable(f"not UTF-8: {fault}") from fault
    if text[:1] != "{":
        text = text.lstrip(_SPACE)
        if text[:1] != "{":
            raise Undecodable("not a JSON object")
    if len(text) > 2 * _DEPTH and text.count("{") + text.count("[") > _DEPTH:
        _check_depth(text)
    return text


def pairs_of(text: str, *, spelt: bool = False) -> Pairs:
    """The names and values of the one object that a text is. Raises Undecodable.

    ``spelt``: whole numbers are ``Spelt``, too. So they are where one of them is very long.
    """
    found: Pairs
    try:
        found, end = (SPELT if spelt else _FAST)(text, 0)
    except Undecodable:
        raise
    except json.JSONDecodeError as fault:
        raise Undecodable(f"not JSON: {fault}") from fault
    except ValueError:  # Python makes no int of thousands of digits
        return pairs_of(text, spelt=True)
    if end != len(text) and text[end:].strip(_SPACE):
        raise Undecodable("text after the object")
    if "\\u" in text and _HALF.search(text):
        _check_halves(text)
    return found


def _check_depth(text: str) -> None:
    """Raises Undecodable where too many objects and arrays are in each other."""
    depth = 0
    for each in _BRACKETS.findall(_TEXT.sub("", text)):
        depth += 1 if each in "{[" else -1
        if depth > _DEPTH:
            raise Undecodable(f"more than {_DEPTH} objects and arrays in each other")


def _check_halves(text: str) -> None:
    """Raises Undecodable where an escape is half of a pair of surrogates, without the other."""
    expected = -1  # where the second half must begin
    for match in _ESCAPE.finditer(text):
        code = int(match[1] or "0", 16)
        second = 0xDC00 <= code < 0xE000
        if second is not (expected >= 0) or (second and match.start() != expected):
            raise Undecodable("half of a pair of surrogates")
        expected = match.end() if 0xD800 <= code < 0xDC00 else -1
    if expected >= 0:
        raise Undecodable("half of a pair of surrogates")


Fold = Callable[[str], str]
_SPACES = re.compile(r"[ \t\r\n]*")


def speller(kind: pa.DataType, fold: Fold) -> Scan:
    """What scans the value of a column of that type; names are compared as ``fold`` gives them.

    It is for documents that ``pairs_of`` has read, and so are sound. Where a column of text has an
    object or an array, it gives their text; else what ``SPELT`` does.
    """
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text
    if pa.types.is_struct(kind):
        fields = {fold(each.name): speller(each.type, fold) for each in kind}
        return _objects(lambda name: fields.get(fold(name), SPELT))
    if pa.types.is_map(kind):
        item = speller(kind.item_type, fold)
        return _objects(lambda _: item)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _arrays(speller(kind.value_type, fold))
    return SPELT


def _text(text: str, at: int) -> tuple[Any, int]:
    found, end = SPELT(text, at)
    return (Spelt(text[at:end]), end) if text[at] in "{[" else (found, end)


def _objects(of: Callable[[str], Scan]) -> Scan:
    def scan(text: str, at: int) -> tuple[Any, int]:
        if text[at] != "{":
            return SPELT(text, at)
        pairs: list[tuple[str, Any]] = []
        at = _next(text, at + 1)
        while text[at] != "}":
            name, at = SPELT(text, at)
            value, at = of(name)(text, _next(text, _next(text, at) + 1))
            pairs.append((name, value))
            at = _behind(text, at)
        return tuple(pairs), at + 1

    return scan


def _arrays(of: Scan) -> Scan:
    def scan(text: str, at: int) -> tuple[Any, int]:
        if text[at] != "[":
            return SPELT(text, at)
        values: list[Any] = []
        at = _next(text, at + 1)
        while text[at] != "]":
            value, at = of(text, at)
            values.append(value)
            at = _behind(text, at)
        return values, at + 1

    return scan


def _next(text: str, at: int) -> int:
    """The place of the next character that is no space."""
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _behind(text: str, at: int) -> int:
    """The place of what follows on a value and its comma, if it has one."""
    at = _next(text, at)
    return _next(text, at + 1) if text[at] == "," else at
