"""What becomes of the fields of a message in the columns that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rivermouth.formats.protobuf.scan import (
    BLOCK,
    FIXED_32,
    FIXED_64,
    NONE,
    VARINT,
    Parts,
    Values,
    scanned,
    unpacked,
)
from rivermouth.formats.protobuf.schema import TIME, WRAPPERS, Enum, Field, Message, Types
from rivermouth.formats.shredded import columns as made
from rivermouth.formats.shredded import texts
from rivermouth.formats.shredded.columns import Make, Site
from rivermouth.formats.shredded.found import Found, Numbers, Spans
from rivermouth.formats.shredded.lanes import Flags, Ints, Lanes, unzigzag
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
    closed: Enum | None = None


@dataclass(frozen=True)
class Plan:
    """``columns`` of the struct ``kind``; None for one that no field gives.

    ``rivals``: the others of a oneof, by the number of a field. ``required``: a record without one
    of these fields is bad.
    """

    kind: pa.StructType
    columns: tuple[Column | None, ...]
    rivals: Mapping[int, tuple[Field, ...]]
    required: tuple[Field, ...]
    numbers: frozenset[int]

    @property
    def pairs(self) -> Iterator[tuple[pa.Field, Column | None]]:
        """The fields of the struct, each with its column."""
        return zip(self.kind, self.columns, strict=True)


def plan(types: Types, message: str, kind: pa.StructType, settings: Settings) -> Plan:
    """For rows of the type. Raises DoesNotFit."""
    return _Planning(types, settings).message(types.messages[message], kind, "")


_WIRE: Mapping[str, int] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64"), VARINT),
    **dict.fromkeys(("bool", "enum"), VARINT),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), FIXED_64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), FIXED_32),
    **dict.fromkeys(("string", "bytes", "message"), BLOCK),
}


@dataclass(frozen=True)
class _Planning:
    types: Types
    settings: Settings

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
        return Plan(kind, tuple(columns), rivals, required, numbers)

    def field(self, field: Field, kind: pa.DataType, where: str) -> Column:
        if not field.repeated:
            return self.single(field, kind, where)
        entry = self.types.messages.get(field.type)
        if entry is not None and entry.entry:
            return self.map(field, entry, kind, where)
        if not pa.types.is_list(kind):
            raise self.no(field, kind, where)
        one = self.single(field, kind.value_type, f"{where}[]")
        return Column(field, kind, pa.scalar([], kind), one.make, one.inside, one.whole, one.closed)

    def map(self, field: Field, entry: Message, kind: pa.DataType, where: str) -> Column:
        if not pa.types.is_map(kind):
            raise self.no(field, kind, where)
        key = next(each for each in entry.fields if each.name == "key")
        of_key = {"string": pa.string(), "bool": pa.bool_()}.get(key.kind, _WIDE)
        pair = pa.struct([("key", of_key), ("value", kind.item_type)])
        # An entry without its key or its value has the values of their types.
        whole = replace(entry, fields=tuple(replace(e, presence=False) for e in entry.fields))
        return Column(field, kind, pa.scalar([], kind), inside=self.message(whole, pair, where))

    def single(self, field: Field, kind: pa.DataType, where: str) -> Column:
        if field.kind == "group":
            raise self.no(field, kind, where)
        if field.kind != "message" or pa.types.is_binary(kind):
            make = self.scalar(field, kind, where)
            null = pa.scalar(None, kind)
            absent = null if field.presence else self.zero(field, kind)
            enum = self.types.enums.get(field.type) if field.kind == "enum" else None
            return Column(field, kind, absent, make, closed=enum if enum and enum.closed else None)
        null, whole = pa.scalar(None, kind), None
        inner: pa.DataType = kind
        if field.type == TIME and pa.types.is_timestamp(kind) and kind.tz is not None:
            inner, whole = pa.struct([("seconds", _WIDE), ("nanos", pa.int32())]), self.time(kind)
        elif field.type in WRAPPERS and not pa.types.is_struct(kind):
            inner, whole = pa.struct([("value", kind)]), lambda rows, _: rows.field(0)
        if not pa.types.is_struct(inner):
            raise self.no(field, kind, where)
        inside = self.message(self.types.messages[field.type], inner, where)
        if not field.presence and whole is None:
            null = pa.scalar({e.name: c and c.absent.as_py() for e, c in inside.pairs}, kind)
        return Column(field, kind, null, inside=inside, whole=whole)

    def scalar(self, field: Field, kind: pa.DataType, where: str) -> Make:
        found = self.number(field, kind) if field.kind in _NUMBERS else self.other(field, kind)
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
_NUMBERS = frozenset(
    f"{sign}{kind}{bits}"
    for kind, signs in (("int", ("", "u", "s")), ("fixed", ("", "s")))
    for sign in signs
    for bits in (32, 64)
)


def _holds_whole(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def rows(of: Plan, parts: Parts, site: Site) -> pa.Array:
    """A row for each message; the owners of the site are the records of the messages."""
    found = scanned(parts, of.numbers, site.where or "the value")
    for field in of.required:
        there = np.zeros(parts.count, np.bool_)
        there[_values(found, field).of] = True
        site.refuse(~there, f"the required field {field.name} is missing")
    columns = []
    for wanted, each in of.pairs:
        if each is None:
            columns.append(pa.nulls(parts.count, wanted.type))
            continue
        values = _values(found, each.field, site)
        at = site.named(wanted.name)
        rivals = [_values(found, rival) for rival in of.rivals.get(each.field.number, ())]
        lost = _lost(values, rivals, parts.count)
        if lost is not None and lost.any():
            if each.inside is not None:  # what does not count must be sound all the same
                _column(each, values.only(lost), parts, at)
            values = values.only(~lost)
        columns.append(_column(each, values, parts, at))
    if not columns:
        return pa.array([{}] * parts.count, of.kind)
    return pa.StructArray.from_arrays(columns, fields=list(of.kind))


def _values(
    found: Mapping[tuple[int, int], Values], field: Field, site: Site | None = None
) -> Values:
    """The values of a field; with a site those of a packed one, too, one by one."""
    wire = _WIRE.get(field.kind, BLOCK)
    plain = found.get((field.number, wire), NONE)
    packed = found.get((field.number, BLOCK), NONE)
    if wire == BLOCK or not field.repeated or not len(packed.at) or site is None:
        return plain
    return unpacked(plain, packed, wire, site, field.name)


def _lost(values: Values, rivals: Sequence[Values], count: int) -> Flags | None:
    """Those after which a value of another field of the oneof comes; None: there are no others."""
    if not rivals:
        return None
    latest = np.full(count, -1)
    for each in rivals:
        np.maximum.at(latest, each.of, each.at)
    return values.at < latest[values.of]


def _column(column: Column, values: Values, parts: Parts, site: Site) -> pa.Array:
    if column.closed is not None:
        known = np.array([*column.closed.names], np.int64)
        values = values.only(np.isin(_as_numbers(column.field, values, site), known))
    if pa.types.is_map(column.kind):
        return _map(column, values, parts, site)
    if not column.field.repeated:
        if column.inside is None:
            last = np.ones(len(values.of), np.bool_)
            last[:-1] = values.of[1:] != values.of[:-1]
            values = values.only(last)
            there = values.of
        else:
            there, of = np.unique(values.of, return_inverse=True)
            values = Values(values.at, values.given, of)
        return _placed(_made(column, values, there, site), there, parts.count, column.absent)
    counts = np.bincount(values.of, minlength=parts.count)
    owners = values.of
    values = Values(values.at, values.given, np.arange(len(owners)))
    items = _made(column, values, owners, site)
    return pa.ListArray.from_arrays(_offsets(counts), items).cast(column.kind)


def _made(column: Column, values: Values, owners: Ints, site: Site) -> pa.Array:
    """The values of a column, or one for each message that they are parts of."""
    its = site.of(owners)
    if column.make is not None:
        return column.make(_found(column.field, values, site), its)
    assert column.inside is not None
    records = its.owners[values.of]
    lanes = Lanes(site.data, values.at, values.at + values.given, records, site.faults)
    made_of = rows(column.inside, Parts(lanes, values.of, len(owners)), its)
    return column.whole(made_of, its) if column.whole is not None else made_of


def _map(column: Column, values: Values, parts: Parts, site: Site) -> pa.Array:
    owners = values.of
    whole = Values(values.at, values.given, np.arange(len(owners)))
    keys, items = _made(column, whole, owners, site).flatten()
    keys = keys.cast(pa.string())
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    # Of equal keys the last one counts.
    both = (owners * (len(keys) + 1) + codes)[::-1]
    _, last = np.unique(both, return_index=True)
    kept = np.sort(len(both) - 1 - last)
    counts = np.bincount(owners[kept], minlength=parts.count)
    chosen = pa.array(kept)
    made_map = pa.MapArray.from_arrays(_offsets(counts), keys.take(chosen), items.take(chosen))
    return made_map.cast(column.kind)


def _offsets(counts: Ints) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _placed(values: pa.Array, of: Ints, count: int, absent: pa.Scalar) -> pa.Array:
    """The values at the places ``of``, ``absent`` elsewhere."""
    if len(of) == count:
        return values
    places = np.full(count, len(values))
    places[of] = np.arange(len(of))
    return pa.concat_arrays([values, pa.repeat(absent, 1)]).take(pa.array(places))


def _found(field: Field, values: Values, site: Site) -> Found:
    if field.kind in _NUMBERS or field.kind in ("bool", "enum"):
        return Numbers(_as_numbers(field, values, site))
    return Spans(values.at, values.given)


def _as_numbers(field: Field, values: Values, site: Site) -> Ints:
    """As the parsers of the language read them: of 32 bits, if the type has so many."""
    kind, given = field.kind, values.given
    if kind == "bool":
        return np.asarray(given != 0, np.int64)
    if kind == "sint64":
        return unzigzag(given.view(np.uint64))
    if kind == "sint32":
        return unzigzag(given.view(np.uint64) & np.uint64(0xFFFFFFFF))
    if kind.endswith(("fixed64", "fixed32")):
        given = site.data.words[values.at].view(np.int64)
    if kind in ("uint32", "fixed32"):
        given = given & 0xFFFFFFFF
    if kind in ("int32", "enum", "sfixed32"):
        given = given.astype(np.int32).astype(np.int64)
    return given
