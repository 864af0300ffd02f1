"""Schemas and values of Avro made by dice, and the values that columns should get of them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from typing import Any

import fastavro
import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DEEPEST = 3


@dataclass(frozen=True)
class Sample:
    """A schema of a record, the type of the rows, and values as fastavro writes and reads them."""

    schema: dict[str, Any]
    row: pa.StructType
    values: tuple[dict[str, Any], ...]

    @property
    def text(self) -> str:
        return json.dumps(self.schema)

    @property
    def written(self) -> list[bytes]:
        """The values, as fastavro writes them."""
        parsed = fastavro.parse_schema(self.schema)
        return [written(parsed, each) for each in self.values]


def written(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    into = io.BytesIO()
    fastavro.schemaless_writer(into, schema, value)
    return into.getvalue()


class Dice:
    """Makes schemas and values."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0

    def sample(self, values: int) -> Sample:
        """A record of some fields."""
        fields = [self._field(0) for _ in range(self._random.randint(1, 6))]
        schema = {"type": "record", "name": "R", "fields": [each[0] for each in fields]}
        row = pa.struct([(each[0]["name"], each[1]) for each in fields])
        made = tuple({each[0]["name"]: each[2]() for each in fields} for _ in range(values))
        return Sample(schema, row, made)

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _field(self, depth: int) -> tuple[dict[str, Any], pa.DataType, Any]:
        schema, kind, make = self._type(depth)
        return {"name": self._name("f"), "type": schema}, kind, make

    def _type(self, depth: int) -> tuple[Any, pa.DataType, Any]:
        kinds: list[Callable[[], tuple[Any, pa.DataType, Any]]] = [
            *(self._int, self._long, self._text, self._bytes, self._float, self._boolean),
            *(self._enum, self._fixed, self._decimal, self._time, self._day),
        ]
        if depth < _DEEPEST:
            nested = (self._array, self._map, self._record, self._nullable)
            kinds += [partial(each, depth + 1) for each in nested]
        return self._random.choice(kinds)()

    def _int(self) -> tuple[Any, pa.DataType, Any]:
        return "int", pa.int32(), lambda: self._whole(31)

    def _long(self) -> tuple[Any, pa.DataType, Any]:
        return "long", pa.int64(), lambda: self._whole(63)

    def _whole(self, bits: int) -> int:
        size = self._random.randint(0, bits)
        return self._random.randint(-(2**size), 2**size - 1)

    def _text(self) -> tuple[Any, pa.DataType, Any]:
        return (
            "string",
            pa.string(),
            lambda: "".join(self._random.choices("abc ü€😀\0", k=self._length())),
        )

    def _bytes(self) -> tuple[Any, pa.DataType, Any]:
        return "bytes", pa.binary(), lambda: self._random.randbytes(self._length())

    def _length(self) -> int:
        return self._random.choice((0, 1, 2, 5, 70, self._random.randint(0, 200)))

    def _float(self) -> tuple[Any, pa.DataType, Any]:
        return (
            "double",
            pa.float64(),
            lambda: self._random.choice((0.0, -1.5, self._random.random())),
        )

    def _boolean(self) -> tuple[Any, pa.DataType, Any]:
        return "boolean", pa.bool_(), lambda: self._random.random() < 0.5

    def _enum(self) -> tuple[Any, pa.DataType, Any]:
        symbols = [f"S{n}" for n in range(self._random.choice((1, 3, 70)))]
        schema = {"type": "enum", "name": self._name("E"), "symbols": symbols}
        return schema, pa.string(), lambda: self._random.choice(symbols)

    def _fixed(self) -> tuple[Any, pa.DataType, Any]:
        size = self._random.randint(1, 9)
        schema = {"type": "fixed", "name": self._name("X"), "size": size}
        return schema, pa.binary(), lambda: self._random.randbytes(size)

    def _decimal(self) -> tuple[Any, pa.DataType, Any]:
        precision = self._random.randint(1, 28)  # of what fastavro writes without a context
        scale = self._random.randint(0, precision)
        schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        kind = pa.decimal128(precision, scale)

        def make() -> Decimal:
            digits = self._random.randint(0, precision)
            most = 10**digits - 1
            return Decimal(self._random.randint(-most, most)).scaleb(-scale)

        return schema, kind, make

    def _time(self) -> tuple[Any, pa.DataType, Any]:
        unit, step = self._random.choice((("micros", 1), ("millis", 1_000)))
        schema = {"type": "long", "logicalType": f"timestamp-{unit}"}

        def make() -> datetime:
            us = self._random.randint(-(10**15), 4 * 10**15) // step * step
            return _EPOCH + timedelta(microseconds=us)

        return schema, pa.timestamp("us", "UTC"), make

    def _day(self) -> tuple[Any, pa.DataType, Any]:
        schema = {"type": "int", "logicalType": "date"}
        return schema, pa.date32(), lambda: date.fromordinal(self._random.randint(1, 3_652_059))

    def _array(self, depth: int) -> tuple[Any, pa.DataType, Any]:
        schema, kind, make = self._type(depth)

        def values() -> list[Any]:
            return [make() for _ in range(self._random.choice((0, 1, 2, 3, 40)))]

        return {"type": "array", "items": schema}, pa.list_(kind), values

    def _map(self, depth: int) -> tuple[Any, pa.DataType, Any]:
        schema, kind, make = self._type(depth)

        def values() -> dict[str, Any]:
            return {f"k{n}": make() for n in range(self._random.randint(0, 3))}

        return {"type": "map", "values": schema}, pa.map_(pa.string(), kind), values

    def _record(self, depth: int) -> tuple[Any, pa.DataType, Any]:
        fields = [self._field(depth) for _ in range(self._random.randint(1, 3))]
        schema = {
            "type": "record",
            "name": self._name("R"),
            "fields": [each[0] for each in fields],
        }
        kind = pa.struct([(each[0]["name"], each[1]) for each in fields])
        return schema, kind, lambda: {each[0]["name"]: each[2]() for each in fields}

    def _nullable(self, depth: int) -> tuple[Any, pa.DataType, Any]:
        schema, kind, make = self._type(depth)
        if isinstance(schema, list):
            return schema, kind, make
        branches = ["null", schema] if self._random.random() < 0.7 else [schema, "null"]
        return branches, kind, lambda: None if self._random.random() < 0.4 else make()


def as_python(rows: pa.StructArray) -> list[Any]:
    """The rows as fastavro has them: maps are dicts."""
    return [_plain(each, rows.type) for each in rows.to_pylist()]


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return value.astimezone(timezone.utc)
    if pa.types.is_map(kind):
        return {key: _plain(each, kind.item_type) for key, each in value}
    if pa.types.is_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {each.name: _plain(value[each.name], each.type) for each in kind}
    return value
