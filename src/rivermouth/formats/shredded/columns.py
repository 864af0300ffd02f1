"""What was found in records, as Arrow columns; what does not fit makes its record bad.

Nothing is rounded, cut or guessed: a value is in the column exactly, or its record is bad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.formats.shredded.found import (
    Choice,
    Found,
    Group,
    Many,
    Numbers,
    Spans,
    spans_of,
)
from rivermouth.formats.shredded.lanes import Bytes, Faults, Flags, Ints

FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since 1970: the years 0001 to 9999."""
_DAY = 86_400_000_000


@dataclass(frozen=True)
class Site:
    """Values of one place in the records: ``owners`` are the records that they are of.

    ``where`` names the place. ``buffer`` has the bytes that ``data`` shows.
    """

    buffer: pa.Buffer
    data: Bytes
    faults: Faults
    owners: Ints
    where: str

    def refuse(self, bad: Flags, reason: str) -> None:
        """Say of those values that they do not fit."""
        if bad.any():
            self.faults.add(self.owners[bad], f"{self.where}: {reason}" if self.where else reason)

    def of(self, these: NDArray[np.int64] | Flags, where: str | None = None) -> Site:
        """The site of some of the values, or of others that stand inside."""
        place = self.where if where is None else where
        return Site(self.buffer, self.data, self.faults, self.owners[these], place)

    def named(self, name: str) -> Site:
        """That of a field."""
        where = f"{self.where}.{name}" if self.where else name
        return Site(self.buffer, self.data, self.faults, self.owners, where)


Make = Callable[[Found | None, Site], pa.Array]
"""Makes a column of what was found; it has one value for each owner of the site."""


def nothing(kind: pa.DataType) -> Make:
    """Null, whatever was found."""
    return lambda _, site: pa.nulls(len(site.owners), kind)


def constant(value: pa.Scalar) -> Make:
    """The same value, whatever was found."""
    return lambda _, site: pa.repeat(value, len(site.owners))


def booleans(found: Found | None, site: Site) -> pa.Array:
    """Of numbers that are 0 or 1."""
    values = _numbers(found)
    site.refuse((values < 0) | (values > 1), "a BOOLEAN is written as 0 or 1")
    return pa.array(values == 1)


def whole(kind: pa.DataType, name: str) -> Make:
    """Whole numbers for a column of whole numbers, FLOAT, DOUBLE or DECIMAL. ``name``: its type."""
    if pa.types.is_floating(kind):
        return lambda found, site: _as_floating(_numbers(found), kind, name, site)
    if pa.types.is_decimal(kind):
        return lambda found, site: _as_decimal(_numbers(found), kind, name, site)
    most = 1 << (kind.bit_width - 1)

    def make(found: Found | None, site: Site) -> pa.Array:
        values = _numbers(found)
        if kind.bit_width < 64:
            bad = (values < -most) | (values >= most)
            site.refuse(bad, f"a number that is not in the range of {name}")
        return pa.array(values.astype(kind.to_pandas_dtype()))

    return make


def _as_floating(values: Ints, kind: pa.DataType, name: str, site: Site) -> pa.Array:
    made = values.astype(kind.to_pandas_dtype())
    # 2 ** 63 is no number of 64 bits: it would come back as another one.
    back = np.where(made >= 2.0**63, 0, made).astype(np.int64)
    site.refuse(back != values, f"a number that {name} does not hold exactly")
    return pa.array(made)


def _as_decimal(values: Ints, kind: pa.DataType, name: str, site: Site) -> pa.Array:
    digits = kind.precision - kind.scale
    if digits < 19:
        bad = (values >= 10**digits) | (values <= -(10**digits))
        site.refuse(bad, f"a number that is not in the range of {name}")
        values = np.where(bad, 0, values)
    wide = pa.decimal256(19 + kind.scale, kind.scale)
    return pa.array(values).cast(wide).cast(kind)


def unsigned(kind: pa.DataType, name: str) -> Make:
    """The same for numbers without a sign: those from 2 ** 63 on look negative here."""
    signed = whole(kind, name)
    if not pa.types.is_decimal(kind) or kind.precision - kind.scale < 20:

        def make(found: Found | None, site: Site) -> pa.Array:
            site.refuse(_numbers(found) < 0, f"a number that is not in the range of {name}")
            return signed(found, site)

        return make

    def large(found: Found | None, site: Site) -> pa.Array:
        low = _numbers(found)
        return _decimal128(low, np.zeros_like(low), pa.decimal128(38, 0)).cast(kind)

    return large


def times(kind: pa.DataType, unit: str, *, cut: bool = False) -> Make:
    """What counts ``s``, ``ms``, ``us`` or ``ns`` since 1970, for a column of times.

    ``cut``: what is less than a microsecond is cut, towards the past; else it is bad.
    """
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[unit]

    def make(found: Found | None, site: Site) -> pa.Array:
        values = _numbers(found)
        if unit == "ns":
            if not cut:
                site.refuse(values % 1_000 != 0, "a time that is no whole microsecond")
            values = values // 1_000
        bad = (values < FIRST_TIME // factor) | (values > LAST_TIME // factor)
        site.refuse(bad, "a time that is not in the years 0001 to 9999")
        us = np.where(bad, 0, values) * factor
        return pa.array(us).cast(kind)

    return make


def days(found: Found | None, site: Site) -> pa.Array:
    """What counts days since 1970."""
    values = _numbers(found)
    bad = (values < FIRST_TIME // _DAY) | (values > LAST_TIME // _DAY)
    site.refuse(bad, "a day that is not in the years 0001 to 9999")
    return pa.array(np.where(bad, 0, values).astype(np.int32)).cast(pa.date32())


def floats(bits: int, kind: pa.DataType) -> Make | None:
    """IEEE 754 numbers of so many bits, the lowest first; None: the column has fewer, or others."""
    if not pa.types.is_floating(kind) or kind.bit_width < bits:
        return None

    def make(found: Found | None, site: Site) -> pa.Array:
        words = site.data.words[spans_of(found).starts]
        if bits == 64:
            return pa.array(words.view(np.float64))
        short = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
        return pa.array(short.astype(kind.to_pandas_dtype()))

    return make


def symbols(names: Sequence[str | None]) -> Make:
    """Text by its number in the list; None stands for a symbol that makes its record bad."""
    of = pa.array([*names, None], pa.string())
    bad = of.is_null().to_numpy(zero_copy_only=False)

    def make(found: Found | None, site: Site) -> pa.Array:
        values = _numbers(found)
        values = np.where((values < 0) | (values >= len(names)), len(names), values)
        site.refuse(bad[values], "a symbol that is not known")
        return of.take(pa.array(values))

    return make


def named(names: Mapping[int, str]) -> Make:
    """Text by its number."""
    numbers = np.array(sorted(names), np.int64)
    of = symbols([names[each] for each in numbers.tolist()])

    def make(found: Found | None, site: Site) -> pa.Array:
        values = _numbers(found)
        at = np.searchsorted(numbers, values).clip(0, max(len(numbers) - 1, 0))
        return of(Numbers(np.where(numbers[at] == values, at, len(numbers))), site)

    return make


def decimals(scale: int, kind: pa.DataType, name: str) -> Make:
    """Numbers of ``scale`` digits after the point, as bytes: two's complement, highest first."""

    def make(found: Found | None, site: Site) -> pa.Array:
        spans = spans_of(found)
        low, high, bad = _integers(site.data, spans)
        for at in np.flatnonzero(spans.lengths > 16).tolist():
            start = int(spans.starts[at])
            code = site.data.codes[start : start + int(spans.lengths[at])].tobytes()
            number = int.from_bytes(code, "big", signed=True)
            bad[at] = abs(number) >= 10**38
            if not bad[at]:
                low[at], high[at] = _halves(number)
        for at in np.flatnonzero((high >= _MOST) | (high <= -_MOST - 1)).tolist():
            number = (int(high[at]) << 64) + int(low.view(np.uint64)[at])
            bad[at] |= abs(number) >= 10**38
        low[bad], high[bad] = 0, 0
        made = _decimal128(low, high, pa.decimal128(38, scale))
        reason = f"a number that {name} does not hold exactly"
        try:
            made = made.cast(kind)
        except pa.ArrowInvalid:
            bad |= [not _holds(each, kind) for each in made.to_pylist()]
            low[bad], high[bad] = 0, 0
            made = _decimal128(low, high, pa.decimal128(38, scale)).cast(kind)
        site.refuse(bad, reason)
        return made

    return make


_MOST = 10**38 >> 64


def _halves(number: int) -> tuple[int, int]:
    low = number & (2**64 - 1)
    return low - 2**64 if low >= 2**63 else low, number >> 64


def _integers(data: Bytes, spans: Spans) -> tuple[Ints, Ints, Flags]:
    """The lower and the upper 64 bits; bad is what has no byte. Above 16 bytes: nothing."""
    lengths = spans.lengths
    lower = np.clip(lengths, 0, 8)
    first = data.words[spans.starts].byteswap().view(np.int64)
    long = lengths > 8
    ends = np.where(long, spans.starts + np.clip(lengths, 8, 16) - 8, spans.starts)
    last = np.where(long, data.words[ends].byteswap().view(np.int64), first)
    low: Ints = np.where(lengths == 0, 0, last >> (64 - 8 * np.maximum(lower, 1)))
    upper = np.clip(lengths - 8, 1, 8)
    high: Ints = np.where(long, first >> (64 - 8 * upper), low >> 63)
    return low, high, lengths == 0


def _decimal128(low: Ints, high: Ints, kind: pa.DataType) -> pa.Array:
    both = np.empty(2 * len(low), np.int64)
    both[0::2], both[1::2] = low, high
    return pa.Array.from_buffers(kind, len(low), [None, pa.py_buffer(both)])


def _holds(value: Decimal, kind: pa.DataType) -> bool:
    _, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    shift = kind.scale + int(exponent)
    if shift < 0:
        number, rest = divmod(number, 10**-shift)
        return bool(rest == 0 and number < 10**kind.precision)
    return bool(number * 10**shift < 10**kind.precision)


def struct(kind: pa.StructType, parts: Sequence[tuple[int | None, Make]]) -> Make:
    """Of a group: for each field the index of what was found of it, and what makes a column."""

    def make(found: Found | None, site: Site) -> pa.Array:
        assert isinstance(found, Group)
        values = [
            each(None if at is None else found.fields[at], site.named(field.name))
            for field, (at, each) in zip(kind, parts, strict=True)
        ]
        if not values:
            return pa.array([{}] * len(site.owners), kind)
        return pa.StructArray.from_arrays(values, fields=list(kind))

    return make


def choice(kind: pa.DataType, makes: Sequence[Make | str]) -> Make:
    """Of one of several kinds of value; a text says why a kind does not fit."""

    def make(found: Found | None, site: Site) -> pa.Array:
        assert isinstance(found, Choice)
        places, values, count = np.zeros(len(found.branch), np.int64), [], 0
        for number, (each, inner) in enumerate(zip(makes, found.of, strict=True)):
            its = found.branch == number
            if isinstance(each, str):
                site.refuse(its, each)
                each = nothing(kind)
            if its.all():
                return each(inner, site)
            if its.any():
                values.append(each(inner, site.of(its)))
                places[its] = count + np.arange(len(values[-1]))
                count += len(values[-1])
        return (
            pa.concat_arrays(values).take(pa.array(places))
            if values
            else pa.nulls(len(places), kind)
        )

    return make


def many(kind: pa.DataType, make: Make) -> Make:
    """An array of values, or a map of groups of key and value."""

    def made(found: Found | None, site: Site) -> pa.Array:
        assert isinstance(found, Many)
        inside = site.of(np.repeat(np.arange(len(found.counts)), found.counts))
        values = make(found.of, inside.named("[]"))
        offsets = pa.array(np.concatenate(([0], np.cumsum(found.counts))).astype(np.int32))
        if not pa.types.is_map(kind):
            return pa.ListArray.from_arrays(offsets, values).cast(kind)
        keys, items = values.flatten()
        _check_once(keys, found.counts, site)
        return pa.MapArray.from_arrays(offsets, keys, items).cast(kind)

    return made


def _check_once(keys: pa.Array, counts: Ints, site: Site) -> None:
    """Refuse maps in which a key comes twice."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    maps = np.repeat(np.arange(len(counts)), counts)
    both = maps * (len(keys) + 1) + codes
    _, firsts = np.unique(both, return_index=True)
    if len(firsts) < len(both):
        again = np.ones(len(both), np.bool_)
        again[firsts] = False
        site.refuse(np.bincount(maps[again], minlength=len(counts)) > 0, "a key comes twice")


def _numbers(found: Found | None) -> Ints:
    assert isinstance(found, Numbers)
    return found.values
