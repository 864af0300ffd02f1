"""From what the compiled parser read to the types of the columns, and what must be read again.

Every function returns an array, and which of its values are doubtful: there the compiled parser may
have read otherwise than the specification says, so the exact way reads the record again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.base64_text import decoded
from rivermouth.formats.strict_json.parser import WIDE
from rivermouth.formats.strict_json.settings import Unit

# Years in which no zone leads out of the range.
_DAY = (
    r"[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_HOUR = r"(?:[01][0-9]|2[0-3])"
_CLOCK = rf"[T ]{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_DATE = rf"\A{_DAY}\z"
_LOCAL = rf"\A{_DAY}{_CLOCK}\z"
_ZONED = rf"\A{_DAY}{_CLOCK}(?:Z|[+-]{_HOUR}:?[0-5][0-9])\z"
_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACTLY = Context(prec=100)
_SECONDS = 10**10
"""Numbers of more seconds are left to the exact way: about 300 years around 1970."""


@dataclass(frozen=True)
class Refined:
    array: pa.Array
    doubtful: np.ndarray | None = None  # None: no value is


def refine(array: pa.Array, kind: pa.DataType, unit: Unit | None) -> Refined:
    """The array, which was read as ``ReadAs.kind(kind)``, as one of ``kind``. It has no offset."""
    if pa.types.is_struct(kind):
        return _struct(array, kind, unit)
    if pa.types.is_list(kind):
        return _list(array, kind, unit)
    if array.type == WIDE:
        return _from_wide(array, kind)
    if pa.types.is_floating(kind):
        # From here on not every whole number is one of the type; infinity is beyond.
        limit = 2.0**53 if kind.bit_width == 64 else 2.0**24
        values = array.to_numpy(zero_copy_only=False)
        return Refined(array, np.abs(values) >= limit)
    if pa.types.is_decimal(kind):
        return _decimal(array, kind)
    if pa.types.is_date(kind):
        return _spelt(array, _DATE, kind)
    if pa.types.is_binary(kind):
        return Refined(*decoded(array))
    if pa.types.is_timestamp(kind):
        if pa.types.is_integer(array.type):
            assert unit
            return _counted(array, kind, _PER_SECOND[unit])
        return _timestamp(array, kind)
    return Refined(array)


def _struct(array: pa.StructArray, kind: pa.StructType, unit: Unit | None) -> Refined:
    fields = [refine(array.field(i), each.type, unit) for i, each in enumerate(kind)]
    doubtful = reduce(_either, (each.doubtful for each in fields))
    children = [each.array for each in fields]
    whole = pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=children)
    return Refined(whole, doubtful)


def _list(array: pa.ListArray, kind: pa.ListType, unit: Unit | None) -> Refined:
    inner = refine(array.values, kind.value_type, unit)
    whole = pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[inner.array])
    if inner.doubtful is None or not inner.doubtful.any():
        return Refined(whole)
    ends = array.offsets.to_numpy()[1:]
    doubtful = np.zeros(len(array), dtype=bool)
    doubtful[np.searchsorted(ends, np.flatnonzero(inner.doubtful), side="right")] = True
    return Refined(whole, doubtful)


def _decimal(array: pa.Array, kind: pa.Decimal128Type) -> Refined:
    limit = Decimal(10) ** (kind.precision - kind.scale)
    bound = pa.decimal256(76, kind.scale)
    most, least = (pa.scalar(each, bound) for each in (limit, -limit))
    fits = pc.and_(pc.less(array, most), pc.greater(array, least))
    kept, doubtful = _kept(array, fits)
    return Refined(kept.cast(kind), doubtful)


def _from_wide(array: pa.Array, kind: pa.DataType) -> Refined:
    """A whole number or decimal, from all its digits."""
    wide = pa.decimal256(76, WIDE.scale)
    array = pa.Array.from_buffers(wide, len(array), array.buffers())
    if pa.types.is_integer(kind):
        scale, limit = 0, Decimal(2 ** (kind.bit_width - 1))
    else:
        scale, limit = kind.scale, Decimal(10) ** (kind.precision - kind.scale)
    most = _EXACTLY.subtract(limit, Decimal(1).scaleb(-WIDE.scale))  # the limit may be too wide
    upper, lower = (pa.scalar(each, wide) for each in (most, most.copy_negate()))
    in_range = pc.and_(pc.less_equal(array, upper), pc.greater_equal(array, lower))
    array, doubtful = _kept(array, in_range)
    array, more = _kept(array, pc.equal(pc.round(array, scale), array))
    return Refined(array.cast(kind), _either(doubtful, more))


def _timestamp(array: pa.StringArray, kind: pa.TimestampType) -> Refined:
    if not kind.tz:
        return _spelt(array, _LOCAL, kind)
    zoned = _spelt(array, _ZONED, kind)
    if zoned.doubtful is None or not zoned.doubtful.any():
        return zoned
    # Without a zone a TIMESTAMP is in UTC.
    places = np.flatnonzero(zoned.doubtful)
    local = _spelt(array.take(pa.array(places)), _LOCAL, pa.timestamp("us"))
    if local.array.null_count == len(places):
        return zoned
    both = pc.replace_with_mask(zoned.array, pa.array(zoned.doubtful), local.array.cast(kind))
    doubtful = zoned.doubtful.copy()
    doubtful[places] = False if local.doubtful is None else local.doubtful
    return Refined(both, doubtful)


def _spelt(array: pa.StringArray, form: str, kind: pa.DataType) -> Refined:
    kept, doubtful = _kept(array, pc.match_substring_regex(array, form))
    return Refined(kept.cast(kind), doubtful)


def _counted(array: pa.Int64Array, kind: pa.TimestampType, per_second: int) -> Refined:
    limit = min(_SECONDS * per_second, 2**62)
    fits = pc.and_(pc.less(array, limit), pc.greater(array, -limit))
    kept, doubtful = _kept(array, fits)
    if per_second <= 10**6:
        return Refined(pc.multiply(kept, 10**6 // per_second).cast(kind), doubtful)
    micros = pc.divide(kept, 1000)
    exact = pc.equal(pc.multiply(micros, 1000), kept)
    micros, uneven = _kept(micros, exact)
    return Refined(micros.cast(kind), _either(doubtful, uneven))


def _either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    if one is None or other is None:
        return other if one is None else one
    both: np.ndarray = one | other
    return both


def _kept(array: pa.Array, fits: pa.BooleanArray) -> tuple[pa.Array, np.ndarray | None]:
    """The array with null where a value does not fit, and where that is."""
    misfits = pc.invert(fits.fill_null(True))
    if misfits.true_count == 0:
        return array, None
    nothing = pa.scalar(None, array.type)
    return pc.if_else(misfits, nothing, array), misfits.to_numpy(zero_copy_only=False)
