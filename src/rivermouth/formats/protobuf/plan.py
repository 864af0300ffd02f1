"""What becomes of the fields of a message in the columns that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rivermouth.formats.protobuf.schema import TIME, WRAPPERS, Field, Message, Types
from rivermouth.formats.shredded import columns as made
from rivermouth.formats.shredded import texts
from rivermouth.formats.shredded.columns import Make, Site
from rivermouth.formats.shredded.lanes import Ints
from rivermouth.formats.shredded.reading import Settings
from rivermouth.formats.strict_json.types import sql_name


class DoesNotFit(ValueError):
    """The column cannot hold what the message type says; the text says where and why."""


@dataclass(frozen=True)
class Column:
    """A field of which a column is made. ``inside``: what is taken of the message that it is.

    ``make`` makes values of what was found; of messages it makes them of their rows.
    ``absent`` is the value of a field that is not there.
    """

    field: Field
    kind: pa.DataType
    absent: pa.Scalar
    make: Make | None = None
    inside: Plan | None = None
    whole: Callable[[pa.StructArray, Site], pa.Array] | None = None


@dataclass(frozen=True)
class Plan:
    """``columns`` of the struct ``kind``; None for one that no field gives.

    ``rivals``: the others of a oneof, by the number of a field. ``required``: a record without one
    of these fields is bad. ``closed``: the numbers that count, by the number of a field whose enum
    is closed. ``depth``: in how many messages it stands.
    """

    kind: pa.StructType
    columns: tuple[Column | None, ...]
    rivals: Mapping[int, tuple[Field, ...]]
    required: tuple[Field, ...]
    numbers: frozenset[int]
    closed: Mapping[int, Ints]
    depth: int

    @property
    def pairs(self) -> Iterator[tuple[pa.Field, Column | None]]:
        """The fields of the struct, each with its column."""
        return zip(self.kind, self.columns, strict=True)


def plan(types: Types, message: str, kind: pa.StructType, settings: Settings) -> Plan:
    """For rows of the type. Raises DoesNotFit."""
    return _Planning(types, settings).message(types.messages[message], kind, "")


@dataclass(frozen=True)
class _Planning:
    types: Types
    settings: Settings
    depth: int = 0

    def message(self, message: Message, kind: pa.StructType, where: str) -> Plan:
        fields = {self.settings.same(each.name): each for each in message.fields}
        columns = []
        for wanted in kind:
            field = fields.get(self.settings.same(wanted.name))
            at = f"{where}.{wanted.name}" if where else wanted.name
            columns.append(None if field is None else self.field(field, wanted.type, at))
        taken = {each.field.number for each in columns if each is not None}
        rivals = {
            field.number: tuple(
                each
                for each in message.fields
                if each.choice == field.choice and each.number != field.number
            )
            for field in message.fields
            if field.choice and field.number in taken
        }
        required = tuple(each for each in message.fields if each.required)
        beside = {each.number for fields in rivals.values() for each in fields}
        numbers = frozenset(taken | beside | {each.number for each in required})
        closed = {
            each.number: np.array([*self.types.enums[each.type].names], np.int64)
            for each in message.fields
            if each.kind == "enum" and self.types.enums[each.type].closed
        }
        return Plan(kind, tuple(columns), rivals, required, numbers, closed, self.depth)

    def field(self, field: Field, kind: pa.DataType, where: str) -> Column:
        if not field.repeated:
            return self.single(field, kind, where)
        entry = self.types.messages.get(field.type)
        if entry is not None and entry.entry:
            return self.map(field, entry, kind, where)
        if not pa.types.is_list(kind):
            raise self.no(field, kind, where)
        one = self.single(field, kind.value_type, f"{where}[]")
        return Column(field, kind, pa.scalar([], kind), one.make, one.inside, one.whole)

    def map(self, field: Field, entry: Message, kind: pa.DataType, where: str) -> Column:
        if not pa.types.is_map(kind):
            raise self.no(field, kind, where)
        key = next(each for each in entry.fields if each.name == "key")
        of_key = {"string": pa.string(), "bool": pa.bool_()}.get(key.kind, _WIDE)
        pair = pa.struct([("key", of_key), ("value", kind.item_type)])
        # An entry without its key or its value has the values of their types.
        fields = [replace(e, presence=False, required=self.lacks(e, kind)) for e in entry.fields]
        whole = self.inner.message(replace(entry, fields=tuple(fields)), pair, where)
        return Column(field, kind, pa.scalar([], kind), inside=whole)

    @property
    def inner(self) -> _Planning:
        """For what stands in a message."""
        return replace(self, depth=self.depth + 1)

    def lacks(self, field: Field, kind: pa.MapType) -> bool:
        """Whether the value of a type, in a map, is a message without a field that is required."""
        if field.kind != "message" or pa.types.is_binary(kind.item_type):
            return False
        return any(each.required for each in self.types.messages[field.type].fields)

    def single(self, field: Field, kind: pa.DataType, where: str) -> Column:
        if field.kind == "group":
            raise self.no(field, kind, where)
        if field.kind != "message" or pa.types.is_binary(kind):
            make = self.scalar(field, kind, where)
            null = pa.scalar(None, kind)
            absent = null if field.presence else self.zero(field, kind)
            return Column(field, kind, absent, make)
        null, whole = pa.scalar(None, kind), None
        inner: pa.DataType = kind
        if field.type == TIME and pa.types.is_timestamp(kind) and kind.tz is not None:
            inner, whole = pa.struct([("seconds", _WIDE), ("nanos", pa.int32())]), self.time(kind)
        elif field.type in WRAPPERS and not pa.types.is_struct(kind):
            inner, whole = pa.struct([("value", kind)]), lambda rows, _: rows.field(0)
        if not pa.types.is_struct(inner):
            raise self.no(field, kind, where)
        inside = self.inner.message(self.types.messages[field.type], inner, where)
        if not field.presence and whole is None:
            null = pa.scalar({e.name: c and c.absent.as_py() for e, c in inside.pairs}, kind)
        elif not field.presence:
            only = inside.columns[0] if field.type != TIME else None
            null = pa.scalar(0).cast(kind) if only is None else only.absent
        return Column(field, kind, null, inside=inside, whole=whole)

    def scalar(self, field: Field, kind: pa.DataType, where: str) -> Make:
        found = self.number(field, kind) if field.kind in NUMBERS else self.other(field, kind)
        if found is None:
            raise self.no(field, kind, where)
        return found

    def number(self, field: Field, kind: pa.DataType) -> Make | None:
        if pa.types.is_timestamp(kind) and kind.tz is not None and self.settings.unit:
            return made.times(kind, self.settings.unit, cut=self.settings.cut)
        if field.kind in ("uint64", "fixed64"):
            return made.unsigned(kind, sql_name(kind)) if _holds_whole(kind) else None
        return made.whole(kind, sql_name(kind)) if _holds_whole(kind) else None

    def other(self, field: Field, kind: pa.DataType) -> Make | None:
        if field.kind in ("float", "double"):
            return made.floats(32 if field.kind == "float" else 64, kind)
        if field.kind == "bool":
            return made.booleans if pa.types.is_boolean(kind) else None
        if field.kind == "enum":
            if pa.types.is_string(kind):
                return made.named(self.types.enums[field.type].names)
            return made.whole(kind, sql_name(kind)) if pa.types.is_integer(kind) else None
        if pa.types.is_binary(kind):
            return texts.binary
        return texts.text if field.kind == "string" and pa.types.is_string(kind) else None

    def zero(self, field: Field, kind: pa.DataType) -> pa.Scalar:
        """The value of a field without presence that is not there."""
        if field.kind == "enum":
            enum = self.types.enums[field.type]
            number = next(iter(enum.names)) if enum.closed else 0
            return pa.scalar(enum.names.get(number) if pa.types.is_string(kind) else number, kind)
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return pa.scalar("" if pa.types.is_string(kind) else b"", kind)
        if pa.types.is_boolean(kind):
            return pa.scalar(False, kind)
        return pa.scalar(0).cast(kind) if not pa.types.is_decimal(kind) else pa.scalar(0, kind)

    def time(self, kind: pa.DataType) -> Callable[[pa.StructArray, Site], pa.Array]:
        def whole(rows: pa.StructArray, site: Site) -> pa.Array:
            seconds, nanos = (each.to_numpy().astype(np.int64) for each in rows.flatten())
            site.refuse((nanos < 0) | (nanos >= 10**9), "nanos are not from 0 to 999999999")
            if not self.settings.cut:
                site.refuse(nanos % 1_000 != 0, "a time that is no whole microsecond")
            bad = (seconds < made.FIRST_TIME // 10**6) | (seconds > made.LAST_TIME // 10**6)
            site.refuse(bad, "a time that is not in the years 0001 to 9999")
            return pa.array(np.where(bad, 0, seconds) * 10**6 + nanos // 1_000).cast(kind)

        return whole

    def no(self, field: Field, kind: pa.DataType, where: str) -> DoesNotFit:
        name = field.type or field.kind
        many = "repeated " if field.repeated else ""
        return DoesNotFit(f"{where}: {sql_name(kind)} does not take {many}{name}")


_WIDE = pa.int64()
NUMBERS = frozenset(
    f"{sign}{kind}{bits}"
    for kind, signs in (("int", ("", "u", "s")), ("fixed", ("", "s")))
    for sign in signs
    for bits in (32, 64)
)


def _holds_whole(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
