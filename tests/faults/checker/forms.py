"""What bytes say in the forms that records have here beside JSON, from the formats' own rules.

Each reader gives the members of a record with whole numbers as Decimal, as ``decode`` reads JSON.
All of them raise ValueError where the bytes are none of the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

Columns = Sequence[tuple[str, str]]
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LIMIT = 1 << 63


def avro(value: bytes, columns: Columns) -> dict[str, Any]:
    """A bare record with the fields ``columns``: ``BIGINT`` is long, ``STRING`` string."""
    found: dict[str, Any] = {}
    at = 0
    for name, kind in columns:
        number, at = _varint(value, at)
        number = (number >> 1) ^ -(number & 1)
        if kind == "BIGINT":
            found[name] = Decimal(number)
            continue
        found[name], at = _text(value, at, number)
    if at != len(value):
        raise ValueError("bytes behind the record")
    return found


def protobuf(value: bytes, columns: Columns) -> dict[str, Any]:
    """A bare message of proto3 with the fields ``columns``, numbered from 1: int64 and string."""
    found: dict[str, Any] = {}
    at = 0
    while at < len(value):
        tag, at = _varint(value, at)
        number, wire = tag >> 3, tag & 7
        name, kind = columns[number - 1] if 0 < number <= len(columns) else ("", "")
        if wire == _VARINT:
            read, at = _varint(value, at)
            if kind == "BIGINT":
                found[name] = Decimal(read - 2 * _LIMIT if read >= _LIMIT else read)
        elif wire == _BYTES:
            length, at = _varint(value, at)
            text, at = _text(value, at, length)
            if kind == "STRING":
                found[name] = text
        else:
            at += {_FIXED_64: 8, _FIXED_32: 4}.get(wire, len(value) + 1)
        if not number or at > len(value):
            raise ValueError("no message")
    if not found:
        raise ValueError("none of its fields")
    unset = {"BIGINT": Decimal(0), "STRING": ""}
    return {name: found.get(name, unset[kind]) for name, kind in columns}


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A number of 64 bits, seven in a byte, the lowest first; and where it ends."""
    number = 0
    for place in range(10):
        if at + place >= len(value):
            break
        byte = value[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128 and number < 2 * _LIMIT:
            return number, at + place + 1
    raise ValueError("no number")


def _text(value: bytes, at: int, length: int) -> tuple[str, int]:
    if not 0 <= length <= len(value) - at:
        raise ValueError("no text")
    return value[at : at + length].decode(), at + length
