"""From JSON values to the canonical values of ``Reader``, one converter for each Arrow type.

A number with a point or an exponent comes in as ``Number``, which keeps its spelling.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import NOT_VERIFIABLE, Undecodable
from rivermouth.verify.formats.scalars import days, decimal, micros, single

Convert = Callable[[Any], Any]


class Number(str):
    """A JSON number with a point or an exponent, as it is spelled."""

    __slots__ = ()


_FLOATS = {
    "NaN": float("nan"),
    **dict.fromkeys(("INF", "+INF", "Infinity", "+Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
}


def converter(kind: pa.DataType) -> Convert:
    """What converts a JSON value that is not null to a value of this type.

    It raises Undecodable for a value that does not fit. Raises Undecodable for an unknown type.
    """
    for test, convert in _BY_TYPE:
        if test(kind):
            return convert(kind)
    raise Undecodable(f"a column of type {kind}")


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
        if type(value) is str:
            if value not in _FLOATS:
                raise Undecodable(f"not {kind}: {value!r}")
            return _FLOATS[value]
        if isinstance(value, (bool, dict, list)):
            raise Undecodable(f"not {kind}: {value!r}")
        return _double(value) if kind.bit_width == 64 else single(_double(value))

    return convert


def _double(value: int | str) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf") if int(value) > 0 else float("-inf")


def _text(_: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, str):
            return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()
        if isinstance(value, bool):
            return "true" if value else "false"
        # Of an object or array Spark keeps the record's own spelling, which is lost here.
        return NOT_VERIFIABLE if isinstance(value, (dict, list)) else str(value)

    return convert


def _boolean(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Undecodable(f"not {kind}: {value!r}")
        return value

    return convert


def _decimal(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, (bool, dict, list)):
            raise Undecodable(f"not {kind}: {value!r}")
        text = value.replace(",", "") if type(value) is str else str(value)
        return decimal(text, kind.precision, kind.scale)

    return convert


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError as fault:
        raise Undecodable(f"not Base64: {text!r}") from fault


def _from_text(read: Callable[[str], Any]) -> Callable[[pa.DataType], Convert]:
    def convert(value: Any) -> Any:
        if type(value) is not str:
            raise Undecodable(f"not text: {value!r}")
        return read(value)

    return lambda _: convert


def _timestamp(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> int:
        if type(value) is int and kind.tz is not None:
            return value * 1_000_000
        if type(value) is not str:
            raise Undecodable(f"not a timestamp: {value!r}")
        return micros(value, zone=kind.tz is not None)

    return convert


def _struct(kind: pa.DataType) -> Convert:
    fields = [(each.name, converter(each.type)) for each in kind]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Undecodable(f"not an object: {value!r}")
        return {name: _or_none(inner, value.get(name)) for name, inner in fields}

    return convert


def _list(kind: pa.DataType) -> Convert:
    inner = converter(kind.value_type)

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Undecodable(f"not an array: {value!r}")
        return [_or_none(inner, each) for each in value]

    return convert


def _map(kind: pa.DataType) -> Convert:
    inner = converter(kind.item_type)

    def convert(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise Undecodable(f"not an object: {value!r}")
        return [(name, _or_none(inner, each)) for name, each in value.items()]

    return convert


_BY_TYPE: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Convert]]] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _from_text(days)),
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
     _from_text(_binary)),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _list),
)  # fmt: skip
