"""From what the compiled parser read to the types of the columns, and what must be read again.

Every function returns an array, and which of its values are doubtful: there the compiled parser may
have read otherwise than the specification says, so the exact way reads the record again.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.base64_text import decoded
from rivermouth.formats.strict_json.parser import WIDE
from rivermouth.formats.strict_json.refined import Refined, either, kept
from rivermouth.formats.strict_json.settings import Unit
from rivermouth.formats.strict_json.spelt_times import times_of

_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACTLY = Context(prec=100)
_SECONDS = 10**10
"""Numbers of more seconds are left to the exact way: about 300 years around 1970."""


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
    if pa.types.is_binary(kind):
        return Refined(*decoded(array))
    if pa.types.is_timestamp(kind) and pa.types.is_integer(array.type):
        assert unit
        return _counted(array, kind, _PER_SECOND[unit])
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return times_of(array, kind)
    return Refined(array)


def _struct(array: pa.StructArray, kind: pa.StructType, unit: Unit | None) -> Refined:
    fields = [refine(array.field(i), each.type, unit) for i, each in enumerate(kind)]
    doubtful = reduce(either, (each.doubtful for each in fields))
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
    fitting, doubtful = kept(array, fits)
    return Refined(fitting.cast(kind), doubtful)


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
    array, doubtful = kept(array, in_range)
    array, more = kept(array, pc.equal(pc.round(array, scale), array))
    return Refined(array.cast(kind), either(doubtful, more))


def _counted(array: pa.Int64Array, kind: pa.TimestampType, per_second: int) -> Refined:
    limit = min(_SECONDS * per_second, 2**62)
    fits = pc.and_(pc.less(array, limit), pc.greater(array, -limit))
    fitting, doubtful = kept(array, fits)
    if per_second <= 10**6:
        return Refined(pc.multiply(fitting, 10**6 // per_second).cast(kind), doubtful)
    micros = pc.divide(fitting, 1000)
    exact = pc.equal(pc.multiply(micros, 1000), fitting)
    micros, uneven = kept(micros, exact)
    return Refined(micros.cast(kind), either(doubtful, uneven))
