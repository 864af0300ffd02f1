"""Avro by its specification, one record after the other, from the first byte to the last.

A *read* takes the bytes and a place, and gives a value and the place behind it. A *conversion*
makes the canonical value (see ``Reader``) of one.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.avro_schema import ZONED, meaning, schema_of
from rivermouth.verification.formats.exact import Convert, decimal, fits, text, unscaled, whole
from rivermouth.verification.formats.json_scalars import Settings, settings_of
from rivermouth.verification.formats.keys import from_text
from rivermouth.verification.formats.reader import Reader, Undecodable

Read = Callable[[bytes, int], tuple[Any, int]]


def reader(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """Reads the wanted columns out of records of the schema ``schema_file``. Where the columns do
    not fit it, each record is Undecodable.
    """
    given = {each: value for each, value in decoder.items() if each != "framing"}
    text, kinds = given.pop("schema_file"), {each: schema.field(each).type for each in columns}
    try:
        return of_schema(text, kinds, settings_of(given))
    except Undecodable as fault:
        return refusing(str(fault))


def refusing(reason: str) -> Reader:
    """Reads no record."""

    def read(value: bytes) -> tuple[Any, ...]:
        raise Undecodable(reason)

    return read


def of_schema(text: str, kinds: Mapping[str, pa.DataType], settings: Settings) -> Reader:
    """A reader of these columns out of records of one schema. Raises Undecodable if they do not
    fit it.
    """
    schema = schema_of(text)
    _shares_field(schema, settings)
    try:
        read_whole = _read(schema, pa.struct([*kinds.items()]), settings)
    except RecursionError:
        raise Undecodable("a schema that is nested too deeply") from None

    def read(value: bytes) -> tuple[Any, ...]:
        try:
            row, at = read_whole(value, 0)
        except (IndexError, struct.error) as fault:
            raise Undecodable("the record ends within a value") from fault
        if at != len(value):
            raise Undecodable("bytes follow after the value")
        if row is None:
            raise Undecodable("null instead of a record")
        return tuple(row.values())

    return read


def _shares_field(schema: Any, settings: Settings) -> None:
    """Raises Undecodable if a record has none of the fields of all columns."""
    fold: Callable[[str], str] = str.lower if settings.any_case else str
    fields = {fold(each) for each in settings.fields}
    branches = schema if isinstance(schema, list) else [schema]
    names = {fold(f["name"]) for each in branches for f in _fields_of(each)}
    if fields and fields.isdisjoint(names):
        raise Undecodable("it has none of the fields of the schema")


def _fields_of(schema: Any) -> Sequence[Any]:
    found: Sequence[Any] = schema.get("fields", ())
    return found


def _read(schema: Any, kind: pa.DataType | None, of: Settings) -> Read:
    """What reads values of a type for a column; ``kind`` None: nobody wants them."""
    if isinstance(schema, list):
        return _union(schema, kind, of)
    name = schema["type"]
    if name == "record":
        return _record(schema, kind, of)
    if name == "array":
        if kind is not None and not pa.types.is_list(kind):
            raise Undecodable(f"an array for a column of type {kind}")
        if not _has_bytes(schema["items"]):
            raise Undecodable("an array of values without a byte")
        return _items(_read(schema["items"], kind and kind.value_type, of))
    if name == "map":
        return _map(schema, kind, of)
    raw = _raw(name, schema)
    if kind is None:
        return raw
    convert = _simple(name, schema, kind, of)

    def read(code: bytes, at: int) -> tuple[Any, int]:
        value, at = raw(code, at)
        return convert(value), at

    return read


def _has_bytes(schema: Any) -> bool:
    """Whether a value of the type has a byte: else a list of any length has none."""
    if isinstance(schema, list):
        return True
    name = schema["type"]
    if name == "record":
        return any(_has_bytes(each["type"]) for each in schema["fields"])
    return bool(schema["size"]) if name == "fixed" else name != "null"


def _long(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = code[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift == 70:
            break
    if byte >= 0x80 or value >> 64:
        raise Undecodable("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at


def _int(code: bytes, at: int) -> tuple[int, int]:
    value, at = _long(code, at)
    return fits(value, -(2**31) <= value < 2**31), at


def _block(code: bytes, at: int) -> tuple[bytes, int]:
    length, at = _long(code, at)
    return _fixed(length)(code, at)


def _fixed(length: int) -> Read:
    def read(code: bytes, at: int) -> tuple[bytes, int]:
        if not 0 <= length <= len(code) - at:
            raise Undecodable("the record ends within a value")
        return code[at : at + length], at + length

    return read


def _number(form: str) -> Read:
    size = struct.calcsize(form)
    return lambda code, at: (struct.unpack_from(form, code, at)[0], at + size)


def _raw(name: str, schema: Mapping[str, Any]) -> Read:
    """What reads values of a simple type as they are written."""
    if name == "fixed":
        return _fixed(schema["size"])
    if name == "enum":
        symbols = schema["symbols"]

        def symbol(code: bytes, at: int) -> tuple[Any, int]:
            number, at = _int(code, at)
            return (symbols[number] if 0 <= number < len(symbols) else None), at

        return symbol
    return _RAW[name]


_RAW: Mapping[str, Read] = {
    "null": lambda _, at: (None, at),
    "boolean": lambda code, at: (code[at], at + 1),
    "int": _int,
    "long": _long,
    "float": _number("<f"),
    "double": _number("<d"),
    "bytes": _block,
    "string": _block,
}


def _record(schema: Any, kind: pa.DataType | None, of: Settings) -> Read:
    if kind is not None and not pa.types.is_struct(kind):
        raise Undecodable(f"a record for a column of type {kind}")
    fold: Callable[[str], str] = str.lower if of.any_case else str
    wanted = {} if kind is None else {fold(each.name): each for each in kind}
    empty = {each.name: None for each in wanted.values()}
    fields = [(wanted.get(fold(each["name"])), each["type"]) for each in schema["fields"]]
    reads = [
        (None if to is None else to.name, _read(type_, to and to.type, of)) for to, type_ in fields
    ]

    def read(code: bytes, at: int) -> tuple[Any, int]:
        row: dict[str, Any] = dict(empty)
        for name, each in reads:
            value, at = each(code, at)
            if name is not None:
                row[name] = value
        return row, at

    return read


def _items(item: Read) -> Read:
    def read(code: bytes, at: int) -> tuple[Any, int]:
        found: list[Any] = []
        while True:
            count, at = _long(code, at)
            if count < 0:
                count = -count
                _, at = _long(code, at)
            if not count:
                return found, at
            if count > len(code) - at:
                raise Undecodable("more values than the record has bytes")
            for _ in range(count):
                value, at = item(code, at)
                found.append(value)

    return read


def _map(schema: Any, kind: pa.DataType | None, of: Settings) -> Read:
    if kind is not None and not pa.types.is_map(kind):
        raise Undecodable(f"a map for a column of type {kind}")
    item = _read(schema["values"], kind and kind.item_type, of)

    def pair(code: bytes, at: int) -> tuple[Any, int]:
        key, at = _block(code, at)
        value, at = item(code, at)
        return (key if kind is None else text(key), value), at

    read_pairs = _items(pair)

    def read(code: bytes, at: int) -> tuple[Any, int]:
        pairs, at = read_pairs(code, at)
        if kind is not None and len(dict(pairs)) < len(pairs):
            raise Undecodable("a key of a map comes twice")
        return pairs, at

    return read


def _union(branches: Sequence[Any], kind: pa.DataType | None, of: Settings) -> Read:
    reads: list[tuple[Read, str]] = []
    for each in branches:
        try:
            reads.append((_read(each, kind, of), ""))
        except Undecodable as fault:
            reads.append((_read(each, None, of), str(fault)))
    others = [why for each, (_, why) in zip(branches, reads, strict=True) if each["type"] != "null"]
    if others and all(others):
        raise Undecodable(others[0])

    def read(code: bytes, at: int) -> tuple[Any, int]:
        number, at = _long(code, at)
        if not 0 <= number < len(reads):
            raise Undecodable(f"no branch {number} of a union")
        each, why = reads[number]
        if why:
            raise Undecodable(why)
        return each(code, at)

    return read


def _simple(name: str, schema: Mapping[str, Any], kind: pa.DataType, of: Settings) -> Convert:
    logical = meaning(name, schema)
    if logical == ZONED and name == "string" and pa.types.is_timestamp(kind) and kind.tz:
        parse = from_text(kind, replace(of, unit=None))
        return lambda value: parse(text(value))
    if name in ("int", "long"):
        found = whole(logical, kind, of)
    elif name in ("float", "double"):
        wide = pa.types.is_float64(kind) or (name == "float" and pa.types.is_float32(kind))
        found = (lambda value: value) if wide else None
    elif name == "boolean":
        found = _truth if pa.types.is_boolean(kind) else None
    elif name == "enum":
        found = _symbol if pa.types.is_string(kind) else None
    elif name == "null":
        return lambda value: None
    else:
        found = _bytes(name, logical, schema, kind)
    if found is None:
        raise Undecodable(f"{logical or name} for a column of type {kind}")
    return found


def _truth(value: int) -> bool:
    return bool(fits(value, value in (0, 1)))


def _symbol(value: str | None) -> str:
    return str(fits(value, value is not None))


def _bytes(name: str, logical: str, schema: Mapping[str, Any], kind: pa.DataType) -> Convert | None:
    if pa.types.is_decimal(kind):
        if logical != "decimal":
            return None
        scale = int(schema.get("scale", 0))
        if scale > 38:
            return None
        return lambda value: decimal(_of_38_digits(unscaled(value, scale)), kind)
    if pa.types.is_binary(kind):
        return lambda value: value
    if not pa.types.is_string(kind) or logical == "decimal":
        return None
    if name == "fixed":
        return (lambda value: str(uuid.UUID(bytes=value))) if logical == "uuid" else None
    return text


def _of_38_digits(value: Decimal) -> Decimal:
    """The value, if it has no more digits than a DECIMAL can have. Raises Undecodable."""
    fits(value, len(value.as_tuple().digits) <= 38)
    return value
