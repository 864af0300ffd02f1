"""What becomes of a writer's schema in the columns that are wanted: Avro's rules of resolution.

A reader's schema of Avro says which names, defaults and symbols it knows; columns alone know their
names. A writer's type that a column cannot hold makes no plan: each of its records is bad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rivermouth.formats.avro import schema as avro
from rivermouth.formats.avro.grammar import (
    Block,
    Branches,
    Fields,
    Grammar,
    Items,
    Nothing,
    Number,
    Truth,
)
from rivermouth.formats.shredded import columns as made
from rivermouth.formats.shredded import texts
from rivermouth.formats.shredded.columns import Make, Site
from rivermouth.formats.shredded.found import Found
from rivermouth.formats.shredded.reading import Settings
from rivermouth.formats.strict_json.types import JsonSettings, sql_name
from rivermouth.formats.text import column_of


class DoesNotFit(ValueError):
    """The column cannot hold what the schema says; the text says where and why."""


@dataclass(frozen=True)
class Plan:
    """``grammar`` reads a value, ``make`` makes a column of what it finds."""

    grammar: Grammar
    make: Make


def plan(
    writer: avro.Type, kind: pa.DataType, settings: Settings, reader: avro.Type | None = None
) -> Plan:
    """For a column of the type. Raises DoesNotFit and avro.BadSchema."""
    return _Planning(settings).of(writer, kind, reader, "")


def shares_field(writer: avro.Type, row: pa.StructType, settings: Settings) -> bool:
    """Whether a record has a field of the columns; also for what is no record."""
    branches = writer.branches if isinstance(writer, avro.Union) else (writer,)
    records = [each for each in branches if isinstance(each, avro.Record)]
    names = {settings.same(field.name) for each in records for field in each.fields}
    return not records or not names.isdisjoint(settings.same(each.name) for each in row)


@dataclass(frozen=True)
class _Planning:
    settings: Settings

    def of(
        self, writer: avro.Type, kind: pa.DataType, reader: avro.Type | None, where: str
    ) -> Plan:
        grammar = grammar_of(writer, where)
        if isinstance(reader, avro.Union) and not isinstance(writer, avro.Union):
            reader = _branch_for(writer, reader)
        if isinstance(writer, avro.Union):
            return self._union(writer, kind, reader, where)
        if isinstance(writer, avro.Record):
            return self._record(writer, kind, reader, where)
        if isinstance(writer, avro.Array):
            if not pa.types.is_list(kind):
                raise _no(where, writer, kind)
            inner = reader.items if isinstance(reader, avro.Array) else None
            item = self.of(writer.items, kind.value_type, inner, f"{where}[]")
            return Plan(Items(where, item.grammar), made.many(kind, item.make))
        if isinstance(writer, avro.Map):
            return self._map(writer, kind, reader, where)
        if isinstance(writer, avro.Enum):
            return Plan(grammar, _symbols(writer, kind, reader, where))
        return Plan(grammar, self._simple(writer, kind, where))

    def _record(
        self, writer: avro.Record, kind: pa.DataType, reader: avro.Type | None, where: str
    ) -> Plan:
        if not pa.types.is_struct(kind):
            raise _no(where, writer, kind)
        known = {e.name: e for e in reader.fields} if isinstance(reader, avro.Record) else {}
        same = self.settings.same
        places = {same(each.name): at for at, each in enumerate(writer.fields)}
        plans: dict[int, Plan] = {}
        parts: list[tuple[int | None, Make]] = []
        for wanted in kind:
            field = known.get(wanted.name)
            names = (wanted.name, *(field.aliases if field else ()))
            at = next((places[same(each)] for each in names if same(each) in places), None)
            if at is None:
                parts.append((None, _default(field, wanted.type)))
                continue
            if at in plans:
                raise DoesNotFit(f"{_at(where, wanted.name)}: two columns take one field")
            inner = field.type if field else None
            plans[at] = self.of(
                writer.fields[at].type, wanted.type, inner, _at(where, writer.fields[at].name)
            )
            parts.append((at, plans[at].make))
        grammars = tuple(
            plans[at].grammar if at in plans else grammar_of(each.type, _at(where, each.name))
            for at, each in enumerate(writer.fields)
        )
        kept = tuple(at in plans for at in range(len(grammars)))
        return Plan(Fields(grammars, kept), made.struct(kind, parts))

    def _map(
        self, writer: avro.Map, kind: pa.DataType, reader: avro.Type | None, where: str
    ) -> Plan:
        if not pa.types.is_map(kind):
            raise _no(where, writer, kind)
        inner = reader.values if isinstance(reader, avro.Map) else None
        value = self.of(writer.values, kind.item_type, inner, f"{where}{{}}")
        pair = pa.struct([("key", pa.string()), ("value", kind.item_type)])
        entry = Fields((Block(f"{where}{{}}"), value.grammar), (True, True))
        make = made.struct(pair, [(0, texts.text), (1, value.make)])
        return Plan(Items(where, entry), made.many(kind, make))

    def _union(
        self, writer: avro.Union, kind: pa.DataType, reader: avro.Type | None, where: str
    ) -> Plan:
        plans = [self._branch(each, kind, reader, where) for each in writer.branches]
        fitting = [each for each in plans if isinstance(each, Plan)]
        if not fitting and any(not _is_null(each) for each in writer.branches):
            both = zip(plans, writer.branches, strict=True)
            raise DoesNotFit(next(str(why) for why, each in both if not _is_null(each)))
        grammars = tuple(
            each.grammar if isinstance(each, Plan) else grammar_of(branch, where)
            for each, branch in zip(plans, writer.branches, strict=True)
        )
        makes = [
            made.nothing(kind)
            if _is_null(branch)
            else plan.make
            if isinstance(plan, Plan)
            else plan
            for plan, branch in zip(plans, writer.branches, strict=True)
        ]
        return Plan(Branches(where, grammars), made.choice(kind, makes))

    def _branch(
        self, writer: avro.Type, kind: pa.DataType, reader: avro.Type | None, where: str
    ) -> Plan | str:
        """The plan of a branch, or why it does not fit."""
        if _is_null(writer):
            return "null"
        try:
            return self.of(writer, kind, reader, where)
        except DoesNotFit as fault:
            return str(fault)

    def _simple(self, writer: avro.Type, kind: pa.DataType, where: str) -> Make:
        logical = getattr(writer, "logical", None)
        name = logical.name if logical is not None else ""
        if isinstance(writer, avro.Fixed):
            found = self._bytes(writer, kind, logical)
        else:
            assert isinstance(writer, avro.Primitive)
            found = self._primitive(writer, kind, name, logical)
        if found is None:
            raise _no(where, writer, kind)
        return found

    def _primitive(
        self, writer: avro.Primitive, kind: pa.DataType, name: str, logical: avro.Logical | None
    ) -> Make | None:
        if writer.name in ("int", "long"):
            return self._number(kind, name)
        if writer.name in ("float", "double"):
            return made.floats(32 if writer.name == "float" else 64, kind)
        if writer.name == "boolean":
            return made.booleans if pa.types.is_boolean(kind) else None
        if writer.name == "null":
            return made.nothing(kind)
        return self._bytes(writer, kind, logical)

    def _number(self, kind: pa.DataType, logical: str) -> Make | None:
        if pa.types.is_timestamp(kind):
            local, unit = logical.startswith("local-"), _UNITS.get(logical.rpartition("-")[2])
            if logical.removeprefix("local-").startswith("timestamp-") and local == (
                kind.tz is None
            ):
                return made.times(kind, str(unit), cut=self.settings.cut)
            if logical or kind.tz is None or self.settings.unit is None:
                return None
            return made.times(kind, self.settings.unit, cut=self.settings.cut)
        if pa.types.is_date(kind):
            return made.days if logical == "date" else None
        whole = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        return made.whole(kind, sql_name(kind)) if whole else None

    def _bytes(
        self, writer: avro.Type, kind: pa.DataType, logical: avro.Logical | None
    ) -> Make | None:
        """Bytes, text and fixed ones."""
        if pa.types.is_decimal(kind):
            if logical is None or logical.name != "decimal" or logical.scale > 38:
                return None
            return made.decimals(logical.scale, kind, sql_name(kind))
        if pa.types.is_binary(kind):
            return texts.binary
        if pa.types.is_timestamp(kind) and kind.tz and logical and logical.name == avro.ZONED:
            return _zoned(kind, JsonSettings(cut=self.settings.cut))
        if not pa.types.is_string(kind) or (logical is not None and logical.name == "decimal"):
            return None
        if isinstance(writer, avro.Fixed):
            return texts.uuids if logical is not None and logical.name == "uuid" else None
        return texts.text


def _zoned(kind: pa.DataType, settings: JsonSettings) -> Make:
    """Times with their zone, as text: by the rules of JSON."""

    def make(found: Found | None, site: Site) -> pa.Array:
        column, reasons = column_of(texts.text(found, site), kind, settings)
        for at, reason in reasons.items():
            site.of(np.array([at])).refuse(np.array([True]), reason)
        return column

    return make


_UNITS: Mapping[str, str] = {"millis": "ms", "micros": "us", "nanos": "ns"}


def grammar_of(type_: avro.Type, where: str) -> Grammar:
    """How values of a type are written. Raises BadSchema for an array of values without bytes."""
    if isinstance(type_, avro.Primitive):
        return _PRIMITIVES[type_.name](where)
    if isinstance(type_, avro.Fixed):
        return Block(where, type_.size)
    if isinstance(type_, avro.Enum):
        return Number(where, 32)
    if isinstance(type_, avro.Union):
        return Branches(where, tuple(grammar_of(each, where) for each in type_.branches))
    if isinstance(type_, avro.Record):
        fields = tuple(grammar_of(each.type, _at(where, each.name)) for each in type_.fields)
        return Fields(fields, (False,) * len(fields))
    if isinstance(type_, avro.Array):
        if not _has_bytes(type_.items):
            raise avro.BadSchema(f"{where}: an array of values that have no bytes")
        return Items(where, grammar_of(type_.items, f"{where}[]"))
    value = grammar_of(type_.values, f"{where}{{}}")
    return Items(where, Fields((Block(f"{where}{{}}"), value), (False, False)))


_PRIMITIVES: Mapping[str, Callable[[str], Grammar]] = {
    "null": lambda where: Nothing(),
    "boolean": Truth,
    "int": lambda where: Number(where, 32),
    "long": lambda where: Number(where, 64),
    "float": lambda where: Block(where, 4),
    "double": lambda where: Block(where, 8),
    "bytes": Block,
    "string": Block,
}


def _has_bytes(type_: avro.Type) -> bool:
    if isinstance(type_, avro.Record):
        return any(_has_bytes(each.type) for each in type_.fields)
    return not _is_null(type_) and not (isinstance(type_, avro.Fixed) and type_.size == 0)


def _symbols(writer: avro.Enum, kind: pa.DataType, reader: avro.Type | None, where: str) -> Make:
    if not pa.types.is_string(kind):
        raise _no(where, writer, kind)
    if not isinstance(reader, avro.Enum):
        return made.symbols(writer.symbols)
    known = [each if each in reader.symbols else reader.default for each in writer.symbols]
    return made.symbols(known)


def _default(field: avro.Field | None, kind: pa.DataType) -> Make:
    """What a column is that the writer does not know."""
    if field is None or not field.optional:
        return made.nothing(kind)
    value = default_of(field.type, field.default)
    return made.constant(pa.scalar(value, kind))


def default_of(type_: avro.Type, value: Any) -> Any:
    """The value that a default is, from its JSON, for ``pa.scalar``."""
    if isinstance(type_, avro.Union):  # it may be of any branch since Avro 1.12
        if value is None:
            return None
        return default_of(next(each for each in type_.branches if not _is_null(each)), value)
    if isinstance(type_, avro.Record):
        return {
            each.name: default_of(each.type, value.get(each.name, each.default))
            for each in type_.fields
        }
    if isinstance(type_, avro.Array):
        return [default_of(type_.items, each) for each in value]
    if isinstance(type_, avro.Map):
        return [(key, default_of(type_.values, each)) for key, each in value.items()]
    if isinstance(type_, avro.Fixed) or (
        isinstance(type_, avro.Primitive) and type_.name == "bytes"
    ):
        return value.encode("latin-1")
    return value


def _branch_for(writer: avro.Type, reader: avro.Union) -> avro.Type | None:
    """The first branch of the reader of the writer's kind."""
    alike = (each for each in reader.branches if type(each) is type(writer))
    return next(alike, None)


def _is_null(type_: avro.Type) -> bool:
    return isinstance(type_, avro.Primitive) and type_.name == "null"


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def shown(type_: avro.Type) -> str:
    """A type as a message names it."""
    logical = getattr(type_, "logical", None)
    name = type_.name if hasattr(type_, "name") else type(type_).__name__.lower()
    return f"{name} ({logical.name})" if logical is not None else name


def _no(where: str, writer: avro.Type, kind: pa.DataType) -> DoesNotFit:
    return DoesNotFit(f"{where or 'the value'}: {sql_name(kind)} does not take {shown(writer)}")
