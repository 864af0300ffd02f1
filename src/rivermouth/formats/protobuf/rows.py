"""Rows of messages, by their plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from rivermouth.formats.protobuf.plan import NUMBERS, Column, Plan
from rivermouth.formats.protobuf.scan import (
    BLOCK,
    FIXED_32,
    FIXED_64,
    GROUP,
    NONE,
    VARINT,
    Parts,
    Values,
    scanned,
    unpacked,
)
from rivermouth.formats.protobuf.schema import Field
from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.found import Found, Numbers, Spans
from rivermouth.formats.shredded.lanes import Flags, Ints, Lanes, unzigzag

_WIRE: Mapping[str, int] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64"), VARINT),
    **dict.fromkeys(("bool", "enum"), VARINT),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), FIXED_64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), FIXED_32),
    **dict.fromkeys(("string", "bytes", "message"), BLOCK),
    "group": GROUP,
}


def rows(of: Plan, parts: Parts, site: Site) -> pa.Array:
    """A row for each message; the owners of the site are the records of the messages."""
    found = scanned(parts, of.numbers, site.where or "the value", of.depth)
    for field in of.required:
        there = np.zeros(parts.count, np.bool_)
        there[_values(of, found, field).of] = True
        site.refuse(~there, f"the required field {field.name} is missing")
    columns = []
    for wanted, each in of.pairs:
        if each is None:
            columns.append(pa.nulls(parts.count, wanted.type))
            continue
        values = _values(of, found, each.field, site)
        at = site.named(wanted.name)
        rivals = [_values(of, found, rival) for rival in of.rivals.get(each.field.number, ())]
        lost = _lost(values, rivals, parts.count)
        if lost is not None and lost.any():
            if each.inside is not None:  # what does not count must be sound all the same
                _check(each.inside, values.only(lost), at)
            values = values.only(~lost)
        columns.append(_column(each, values, parts, at))
    if not columns:
        return pa.array([{}] * parts.count, of.kind)
    return pa.StructArray.from_arrays(columns, fields=list(of.kind))


def _check(of: Plan, values: Values, site: Site) -> None:
    """Refuse parts of messages that do not follow the encoding, whatever their values are."""
    parts, its = _parts(values, site)
    found = scanned(parts, of.numbers, its.where, of.depth)
    for wanted, each in of.pairs:
        if each is not None:
            inner = _values(of, found, each.field, its)
            if each.inside is not None:
                _check(each.inside, inner, its.named(wanted.name))


def _parts(values: Values, site: Site) -> tuple[Parts, Site]:
    """Values that are messages, each one by itself."""
    its, every = site.of(values.of), np.arange(len(values.of))
    lanes = Lanes(site.data, values.at, values.at + values.given, its.owners, site.faults)
    return Parts(lanes, every, len(every)), its


def _values(
    of: Plan,
    found: Mapping[tuple[int, int], Values],
    field: Field,
    site: Site | None = None,
) -> Values:
    """The values of a field that count; with a site those of a packed one, too, one by one."""
    wire = _WIRE.get(field.kind, BLOCK)
    plain = found.get((field.number, wire), NONE)
    packed = found.get((field.number, BLOCK), NONE)
    if wire != BLOCK and field.repeated and len(packed.at) and site is not None:
        plain = unpacked(plain, packed, wire, site, field.name)
    known = of.closed.get(field.number)
    return plain if known is None else plain.only(np.flatnonzero(_known(plain, known)))


def _known(values: Values, numbers: Ints) -> Flags:
    """Which numbers of an enum are among those."""
    found: Flags = np.isin(values.given.astype(np.int32), numbers)
    return found


def _lost(values: Values, rivals: Sequence[Values], count: int) -> Flags | None:
    """Those after which a value of another field of the oneof comes; None: there are no others."""
    if not rivals:
        return None
    latest = np.full(count, -1)
    for each in rivals:
        np.maximum.at(latest, each.of, each.at)
    return values.at < latest[values.of]


def _column(column: Column, values: Values, parts: Parts, site: Site) -> pa.Array:
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
    assert column.inside is not None
    for number, numbers in column.inside.closed.items():
        # As parsers do: an entry of a number that a closed enum does not have is none.
        entries, its = _parts(values, site)
        given = scanned(entries, (number,), its.where, column.inside.depth)
        told = given.get((number, VARINT), NONE)
        values = values.only(
            np.setdiff1d(np.arange(entries.count), told.of[~_known(told, numbers)])
        )
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
    if field.kind in NUMBERS or field.kind in ("bool", "enum"):
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
