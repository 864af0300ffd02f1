"""Schemas of Avro as values, from their JSON, by the specification (1.12)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log10
from pathlib import Path
from typing import Any, TypeGuard

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class BadSchema(ValueError):
    """What is given is no schema of Avro, or one that is refused; the text says why."""


@dataclass(frozen=True)
class Logical:
    """What the values of a type mean; ``precision`` and ``scale`` are those of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True)
class Primitive:
    """One of ``PRIMITIVES``."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True)
class Fixed:
    """So many bytes."""

    name: str
    size: int
    logical: Logical | None = None


@dataclass(frozen=True)
class Enum:
    """One of the symbols; ``default`` stands for one that a reader does not know."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True)
class Array:
    items: Type


@dataclass(frozen=True)
class Map:
    """From text to values."""

    values: Type


@dataclass(frozen=True)
class Union:
    branches: tuple[Type, ...]


@dataclass(frozen=True)
class Field:
    """``default`` is JSON; it means something only where ``optional``."""

    name: str
    type: Type
    aliases: tuple[str, ...] = ()
    optional: bool = False
    default: Any = None


@dataclass(frozen=True)
class Record:
    name: str
    fields: tuple[Field, ...]


Type = Primitive | Fixed | Enum | Array | Map | Union | Record


def parse(text: str) -> Type:
    """The schema that a text of JSON is. Raises BadSchema."""
    try:
        return _Reading().type(_json(text), "")
    except RecursionError:
        raise BadSchema("the schema is nested too deeply") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as fault:
        raise BadSchema(f"the schema is not JSON: {fault}") from fault


def text_of(file: Path) -> str:
    """The schema in a file, in one line. Raises BadSchema and OSError."""
    text = file.read_text(encoding="utf-8")
    parse(text)
    return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


_OPEN = object()


@dataclass
class _Reading:
    """Types by their full names; ``_OPEN`` for a record that is being read."""

    known: dict[str, Any] = field(default_factory=dict)

    def type(self, given: Any, space: str) -> Type:
        if isinstance(given, str):
            return self._named(given, space)
        if isinstance(given, list):
            return self._union(given, space)
        if not isinstance(given, dict) or "type" not in given:
            raise BadSchema(f"{_short(given)} is no type")
        kind = given["type"]
        if isinstance(kind, (dict, list)):
            return self.type(kind, space)
        if kind in ("record", "error"):
            return self._record(given, space)
        if kind == "enum":
            return self._enum(given, space)
        if kind == "fixed":
            return self._fixed(given, space)
        if kind == "array":
            return Array(self.type(_part(given, "items"), space))
        if kind == "map":
            return Map(self.type(_part(given, "values"), space))
        found = self._named(kind, space)
        return Primitive(found.name, logical_of(given)) if isinstance(found, Primitive) else found

    def _named(self, name: Any, space: str) -> Type:
        if not isinstance(name, str):
            raise BadSchema(f"{_short(name)} is no type")
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self.known.get(full, self.known.get(name))
        if found is _OPEN:
            raise BadSchema(f"{full} holds itself: a column cannot hold what has no end")
        if found is None:
            raise BadSchema(f"{_short(name)} is no type that is known here")
        made: Type = found
        return made

    def _union(self, given: list[Any], space: str) -> Union:
        branches = tuple(self.type(each, space) for each in given)
        if any(isinstance(each, Union) for each in branches):
            raise BadSchema("a union stands directly in a union")
        return Union(branches)

    def _record(self, given: Mapping[str, Any], space: str) -> Record:
        name, inner = _full(given, space)
        self._open(name, _OPEN)
        fields = tuple(self._field(each, inner) for each in _list(given, "fields"))
        names = [each.name for each in fields]
        if len({*names}) < len(names):
            raise BadSchema(f"{name} has two fields of one name")
        made = Record(name, fields)
        self.known[name] = made
        return made

    def _field(self, given: Any, space: str) -> Field:
        if not isinstance(given, dict):
            raise BadSchema(f"{_short(given)} is no field")
        name, kind = _name(given), self.type(_part(given, "type"), space)
        aliases = given.get("aliases")
        others = tuple(aliases) if isinstance(aliases, list) else ()
        return Field(name, kind, others, "default" in given, given.get("default"))

    def _enum(self, given: Mapping[str, Any], space: str) -> Enum:
        name, _ = _full(given, space)
        symbols = tuple(_list(given, "symbols"))
        if not all(isinstance(each, str) for each in symbols):
            raise BadSchema(f"{name} has a symbol that is no text")
        made = Enum(name, symbols, given.get("default"))
        if len({*symbols}) < len(symbols) or (made.default and made.default not in symbols):
            raise BadSchema(f"{name} has a symbol twice, or a default that is none of them")
        self._open(name, made)
        return made

    def _fixed(self, given: Mapping[str, Any], space: str) -> Fixed:
        name, size = _full(given, space)[0], _part(given, "size")
        if not _is_whole(size) or not 0 <= size < 2**31:
            raise BadSchema(f"{name} has the size {_short(size)}")
        made = Fixed(name, size, logical_of(given, size))
        self._open(name, made)
        return made

    def _open(self, name: str, made: object) -> None:
        if name in self.known:
            raise BadSchema(f"{name} is defined twice")
        self.known[name] = made


def _full(given: Mapping[str, Any], space: str) -> tuple[str, str]:
    """The full name of a type, and the namespace of names inside."""
    name = _name(given)
    if "." not in name:
        space = given.get("namespace", space) or ""
        if not isinstance(space, str):
            raise BadSchema(f"{_short(space)} is no namespace")
        return (f"{space}.{name}" if space else name), space
    return name, name.rpartition(".")[0]


def _name(given: Mapping[str, Any]) -> str:
    name = _part(given, "name")
    if not isinstance(name, str):
        raise BadSchema(f"{_short(name)} is no name")
    return name


def _list(given: Mapping[str, Any], key: str) -> Any:
    found = _part(given, key)
    if not isinstance(found, list):
        raise BadSchema(f"{_short(found)} is no list of {key}")
    return found


def _part(given: Mapping[str, Any], key: str) -> Any:
    if key not in given:
        raise BadSchema(f"{_short(dict(given))} has no {key}")
    return given[key]


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def logical_of(given: Mapping[str, Any], size: int | None = None) -> Logical | None:
    """What the values mean. By the specification one that is not valid is as if it were not there.

    Kafka Connect says it of types of Debezium by a name of its own. ``size`` is that of a fixed
    type.
    """
    name = given.get("logicalType", _OF_CONNECT.get(str(given.get("connect.name"))))
    kind = given["type"]
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = given.get("precision"), given.get("scale", 0)
        if not _is_whole(precision) or not _is_whole(scale):
            return None
        most = precision if size is None else int((8 * size - 1) * log10(2))
        fits = 0 < precision <= most and 0 <= scale <= precision
        return Logical(name, precision, scale) if fits else None
    of = _OF.get(name) if isinstance(name, str) and given.get("logicalType") != ZONED else None
    fits = of is not None and (kind in of or (kind, size) in of)
    return Logical(str(name)) if fits else None


ZONED = "zoned-timestamp"
"""No word of Avro: a time with its zone, as text."""
_OF_CONNECT = {
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "local-timestamp-millis",
    "io.debezium.time.MicroTimestamp": "local-timestamp-micros",
    "io.debezium.time.NanoTimestamp": "local-timestamp-nanos",
    "io.debezium.time.ZonedTimestamp": ZONED,
}
_OF: Mapping[str, tuple[Any, ...]] = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    ZONED: ("string",),
    "uuid": ("string", ("fixed", 16)),
    "duration": (("fixed", 12),),
}


def _short(value: object) -> str:
    shown = json.dumps(value, default=str)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


_PLAIN = {
    **{each: each for each in ("boolean", "float", "double", "string")},
    "int": "integer",
    "long": "long",
    "bytes": "binary",
}
_LOGICAL = {
    "date": "date",
    ZONED: "timestamp",
    **{f"timestamp-{unit}": "timestamp" for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": "timestamp_ntz" for unit in ("millis", "micros", "nanos")},
}
_WIDER = {
    frozenset(("integer", "long")): "long",
    frozenset(("integer", "float")): "double",
    frozenset(("integer", "double")): "double",
    frozenset(("float", "double")): "double",
    frozenset(("integer", "float", "double")): "double",
}
"""The type that holds each number of several exactly. A ``double`` does not hold each ``long``."""


def columns_of(text: str) -> Any:
    """The type of the records as Delta's JSON has it; all may be null.

    Raises BadSchema for a schema that is none, and where no one type holds all values.
    """
    return _kind(parse(text), "")


def _kind(type_: Type, where: str) -> Any:
    """None for what is always null: no column holds it."""
    if isinstance(type_, Union):
        return _union(type_, where)
    if isinstance(type_, Record):
        named = [(each.name, _kind(each.type, f"{where}.{each.name}")) for each in type_.fields]
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in named
            if kind is not None
        ]
        return {"type": "struct", "fields": fields} if fields else None
    if isinstance(type_, Array):
        item = _kind(type_.items, f"{where}[]")
        return item and {"type": "array", "elementType": item, "containsNull": True}
    if isinstance(type_, Map):
        item = _kind(type_.values, f"{where}{{}}")
        both = {"keyType": "string", "valueType": item, "valueContainsNull": True}
        return item and {"type": "map", **both}
    if isinstance(type_, Enum):
        return "string"
    return _simple(type_, where)


def _simple(type_: Primitive | Fixed, where: str) -> str | None:
    logical = type_.logical
    if logical is not None and logical.name == "decimal":
        if logical.precision > 38:
            raise BadSchema(f"{where[1:]} has {logical.precision} digits, a DECIMAL at most 38")
        return f"decimal({logical.precision},{logical.scale})"
    if isinstance(type_, Fixed):
        return "string" if logical is not None and logical.name == "uuid" else "binary"
    known = _LOGICAL.get(logical.name) if logical is not None else None
    return known or _PLAIN.get(type_.name)


def _union(type_: Union, where: str) -> Any:
    kinds = [_kind(each, where) for each in type_.branches]
    found = [each for each in kinds if each is not None]
    if all(isinstance(each, str) for each in found) and frozenset(found) in _WIDER:
        return _WIDER[frozenset(found)]
    if any(each != found[0] for each in found):
        raise BadSchema(f"{where[1:] or 'the value'} is a union of types that share no column")
    return found[0] if found else None
