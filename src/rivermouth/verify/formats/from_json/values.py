"""From JSON values to the canonical values of ``Reader``, one converter for each Arrow type.

What each converter accepts is what Spark's ``from_json`` accepts. ``text`` gives the values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.from_json.text import Number, Pairs
from rivermouth.verify.formats.from_json.written import Written
from rivermouth.verify.formats.reader import CannotTell, Undecodable
from rivermouth.verify.formats.scalars import days, decimal, has_foreign_digits, micros, rounded

Convert = Callable[[Any], Any]

_FLOATS = {
    "NaN": float("nan"),
    **dict.fromkeys(("+INF", "Infinity", "+Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
}
_GREGORIAN = -141_427
"""1582-10-15 as days: Spark counts earlier ones in another calendar."""
_QUANTUM = re.compile(r"[\x00-\x20]*([A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))")
_SPACE = re.compile(r"[\x00-\x20]*")


def converter(kind: pa.DataType) -> Convert:
    """What converts a JSON value that is not null to a value of this type.

    It raises Undecodable for a value that does not fit, and CannotTell. Raises Undecodable for an
    unknown type.
    """
    for test, convert in _BY_TYPE:
        if test(kind):
            return convert(kind)
    raise Undecodable(f"a column of type {kind}")


def longest(values: Iterable[Any]) -> int:
    """The length of the longest text in JSON values."""
    found, left = 0, [*values]
    while left:
        value = left.pop()
        if isinstance(value, Pairs):
            left += [held for _, held in value]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str):
            found = max(found, len(value))
    return found


def _or_none(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _integer(kind: pa.DataType) -> Convert:
    limit = 1 << (kind.bit_width - 1)
    # Jackson accepts an unsigned byte and wraps it.
    most = 256 if kind.bit_width == 8 else limit

    def convert(value: Any) -> int:
        if type(value) is not int or not -limit <= value < most:
            raise Undecodable(f"not {kind}: {value!r}")
        return value if value < limit else value - 256

    return convert


def _floating(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> float:
        if type(value) is str or (type(value) is Number and value in _FLOATS):
            if value not in _FLOATS:
                raise Undecodable(f"not {kind}: {value!r}")
            return _FLOATS[value]
        if type(value) not in (int, Number):
            raise Undecodable(f"not {kind}: {value!r}")
        return _double(value) if kind.bit_width == 64 else rounded(value)

    return convert


def _double(value: int | str) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf") if int(value) > 0 else float("-inf")


def _text(_: pa.DataType) -> Convert:
    def convert(value: Any) -> str:
        if type(value) is str:
            return value if value.isascii() else java_text(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if type(value) is int else Written.of(value)

    return convert


def java_text(text: str) -> str:
    """Text as Java encodes it: half of a pair of surrogates becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def _boolean(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Undecodable(f"not {kind}: {value!r}")
        return value

    return convert


def _decimal(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) not in (str, int, Number):
            raise Undecodable(f"not {kind}: {value!r}")
        text = value.replace(",", "") if type(value) is str else str(value)
        return decimal(text, kind.precision, kind.scale)

    return convert


def _binary(text: str) -> bytes:
    """Base64 with its padding; white space may stand between groups of four characters."""
    parts: list[bytes] = []
    at = 0
    while (found := _QUANTUM.match(text, at)) is not None:
        parts.append(base64.b64decode(found[1]))
        at = found.end()
    if not _SPACE.fullmatch(text, at):
        raise Undecodable(f"not Base64: {text!r}")
    return b"".join(parts)


def _date(text: str) -> int:
    """A DATE; text without "GMT", or a number of days, where it is none otherwise."""
    for each in (text, text.replace("GMT", "")):
        try:
            return days(each)
        except Undecodable:
            continue
    if has_foreign_digits(text):
        raise CannotTell("a date in digits of another script")
    if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(1 << 31) <= int(text) < 1 << 31:
        raise Undecodable(f"not a date: {text!r}")
    if int(text) < _GREGORIAN:
        raise CannotTell("a date before 1582 as a number of days")
    return int(text)


def _from_text(read: Callable[[str], Any]) -> Callable[[pa.DataType], Convert]:
    def convert(value: Any) -> Any:
        if type(value) is not str:
            raise Undecodable(f"not text: {value!r}")
        return read(value)

    return lambda _: convert


def _timestamp(kind: pa.DataType) -> Convert:
    zone = kind.tz is not None

    def convert(value: Any) -> int:
        if type(value) is int and zone and -(1 << 63) <= value < 1 << 63:
            # Seconds; Spark does not notice an overflow.
            return (value * 1_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)
        if type(value) is not str:
            raise Undecodable(f"not a timestamp: {value!r}")
        try:
            return micros(value, zone=zone)
        except Undecodable:
            if not zone or "GMT" not in value:
                raise
            return micros(value.replace("GMT", ""))

    return convert


def _struct(kind: pa.DataType) -> Convert:
    fields = {each.name: converter(each.type) for each in kind}

    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not Pairs:
            raise Undecodable(f"not an object: {value!r}")
        found: dict[str, Any] = dict.fromkeys(fields)
        for name, held in value:
            if name in fields:
                found[name] = _or_none(fields[name], held)
        return found

    return convert


def _list(kind: pa.DataType) -> Convert:
    inner = converter(kind.value_type)

    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Undecodable(f"not an array: {value!r}")
        return [_or_none(inner, each) for each in value]

    return convert


def _map(kind: pa.DataType) -> Convert:
    inner = converter(kind.item_type)

    def convert(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not Pairs:
            raise Undecodable(f"not an object: {value!r}")
        return [(java_text(name), _or_none(inner, each)) for name, each in value]

    return convert


_BY_TYPE: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Convert]]] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _from_text(_date)),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
     _from_text(_binary)),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _list),
)  # fmt: skip
