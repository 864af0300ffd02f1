"""Columns whose values are written in another way than the format has it: ``as`` of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.exact import Convert, decimal, fits, time, unscaled
from rivermouth.verification.formats.json_scalars import Settings, settings_of
from rivermouth.verification.formats.keys import from_text
from rivermouth.verification.formats.reader import Reader, Undecodable, UnknownDecoder

_READ = {"days": pa.int64(), "unscaled": pa.binary(), "zoned": pa.string()}
_READ |= dict.fromkeys(("s", "ms", "us", "ns"), pa.int64())


def wire_schema(schema: pa.Schema, wires: Mapping[str, str]) -> pa.Schema:
    """The schema with the types as which such columns are written. Raises UnknownDecoder."""
    unknown = sorted({*wires.values()} - _READ.keys())
    if unknown:
        raise UnknownDecoder(f"columns as {unknown[0]}")
    fields = ((e.name, _READ[wires[e.name]] if e.name in wires else e.type) for e in schema)
    return pa.schema([*fields])


def wired(
    read: Reader,
    schema: pa.Schema,
    columns: Sequence[str],
    wires: Mapping[str, str],
    its: Mapping[str, Any],
) -> Reader:
    """Makes the values of columns of those that ``read`` gives; ``its`` are settings of times."""
    times = {name: its[name] for name in its.keys() & {"timestamps"}}
    of = settings_of(times)
    convert = {
        at: _convert(wires[name], schema.field(name).type, of)
        for at, name in enumerate(columns)
        if name in wires
    }

    def read_wired(value: bytes) -> tuple[Any, ...]:
        row = [*read(value)]
        for at, each in convert.items():
            row[at] = None if row[at] is None else each(row[at])
        return tuple(row)

    return read_wired


def _convert(wire: str, kind: pa.DataType, of: Settings) -> Convert:
    if wire == "days":
        return lambda value: fits(value, -719_162 <= value <= 2_932_896)
    if wire == "unscaled":
        return lambda value: decimal(unscaled(value, kind.scale), kind)
    if wire == "zoned":
        parse = from_text(kind, of)
        return lambda value: parse(_without_zone(value))
    return time(wire, of)


def _without_zone(text: str) -> str:
    if not text.endswith("Z"):
        raise Undecodable(f"no Z at the end of {text!r}")
    return text[:-1]
