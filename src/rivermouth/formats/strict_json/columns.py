"""The compiled parser, and from what it reads to the types of the columns.

Every function returns an array, and which of its values are doubtful: there the compiled parser may
have read otherwise than the specification says, so the exact way reads the record again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property, partial, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from rivermouth.formats.strict_json.chunk import bytes_of, mask_of
from rivermouth.formats.strict_json.scalars import decoded
from rivermouth.formats.strict_json.types import Unit

_ROW = re.compile(r"JSON parse error:.* in row ([0-9]+)", re.DOTALL)
WIDE = pa.decimal256(38, 38)


class Unreadable(Exception):
    """The parser did not read all records.

    ``row`` is the first that it cannot parse; all before it can be parsed. It is None if the parser
    does not say where it failed, or if ``parsed``: all can be parsed, but a number does not fit.
    """

    def __init__(self, row: int | None, *, parsed: bool) -> None:
        super().__init__(row, parsed)
        self.row = row
        self.parsed = parsed


@dataclass(frozen=True)
class ReadAs:
    """How the parser reads the columns. ``numbers``: a TIMESTAMP is a number.

    ``wide``: whole numbers and decimals with all their digits, up to 38 of them on either side of
    the point, so that hardly a record makes the conversion of all fail.
    """

    numbers: bool
    wide: bool

    def kind(self, kind: pa.DataType) -> pa.DataType:
        """The type as which the parser reads a column; ``refine`` makes ``kind`` of it."""
        if pa.types.is_struct(kind):
            return pa.struct([(each.name, self.kind(each.type)) for each in kind])
        if pa.types.is_list(kind):
            return pa.list_(self.kind(kind.value_type))
        if self.wide and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
            return WIDE
        if pa.types.is_decimal(kind):
            # The parser refuses more than 38 digits, but does not see when moving the point makes
            # the value overflow. In 256 bits it cannot.
            return pa.decimal256(38, kind.scale)
        if pa.types.is_timestamp(kind) and kind.tz and self.numbers:
            return pa.int64()
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind):
            return pa.string()
        return kind


def parse(documents: pa.Buffer, count: int, schema: pa.Schema) -> pa.StructArray:
    """So many documents to rows of the schema. Raises Unreadable for what cannot be parsed."""
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(documents),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=documents.size + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException as fault:
        found = _ROW.fullmatch(str(fault))
        parsed = not str(fault).startswith("JSON parse error")
        raise Unreadable(int(found[1]) if found else None, parsed=parsed) from None
    if len(table) != count:
        raise Unreadable(None, parsed=False)
    columns = [each.combine_chunks() for each in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(schema))


@dataclass(frozen=True)
class Refined:
    """``doubtful``: None if no value is. A doubtful value is null, or is not to be used."""

    array: pa.Array
    doubtful: np.ndarray | None = None


def either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """What is doubtful by one or the other."""
    if one is None or other is None:
        return other if one is None else one
    both: np.ndarray = one | other
    return both


def only_fitting(array: pa.Array, fits: pa.BooleanArray) -> tuple[pa.Array, np.ndarray | None]:
    """The array with null where a value does not fit, and where that is."""
    misfits = pc.invert(fits.fill_null(True))
    if misfits.true_count == 0:
        return array, None
    nothing = pa.scalar(None, array.type)
    return pc.if_else(misfits, nothing, array), mask_of(misfits)


# Years in which no zone leads out of the range. Not every one of them has a 29 February.
_DAY = (
    r"[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))"
)
_LEAP_DAY = "-02-29"
_HOUR = r"(?:[01][0-9]|2[0-3])"
_CLOCK = rf"[T ]{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_LEAST, _MOST = b"1000-00-00T00:00:00", b"2999-19-39T29:59:59"
"""The bounds of each digit. Only the cast knows the days of a month and the hours of a day, and
only these bounds keep a year in the range. Behind them stand digits of a fraction or a zone.
"""
_MANY = 1_000
"""For fewer texts a pattern is as fast: each pass has a price of its own."""
_SAMPLES = 8


@dataclass(frozen=True)
class _Form:
    """What the cast to ``through``, if the column is not of that type, surely reads right."""

    pattern: str
    through: pa.DataType | None = None

    @cached_property
    def of(self) -> re.Pattern[str]:
        """For single texts: Arrow compiles a pattern anew in each call."""
        return re.compile(self.pattern)

    def cast(self, texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
        return texts.cast(self.through or kind).cast(kind)


_DATES = _Form(_DAY)
_LOCAL = _Form(_DAY + _CLOCK, pa.timestamp("us"))
_ZONED = _Form(rf"{_DAY}{_CLOCK}(?:Z|[+-]{_HOUR}:?[0-5][0-9])")


def times_of(texts: pa.StringArray, kind: pa.DataType) -> Refined:
    """A date or timestamp from each text; doubtful where it is of no form that the cast knows."""
    found, left = pa.nulls(len(texts), kind), texts.is_valid()
    for way in _ways(texts, _forms_of(kind)):
        if not left.true_count:
            break
        if left.true_count == len(texts):
            found = way(texts, kind)
        else:
            found = pc.replace_with_mask(found, left, way(texts.filter(left), kind))
        left = pc.and_(found.is_null(), texts.is_valid())
    return Refined(found, mask_of(left) if left.true_count else None)


def _forms_of(kind: pa.DataType) -> list[_Form]:
    if pa.types.is_date(kind):
        return [_DATES]
    return [_ZONED, _LOCAL] if kind.tz else [_LOCAL]  # without a zone a TIMESTAMP is in UTC


_Way = Callable[[pa.StringArray, pa.DataType], pa.Array]
"""From texts to times, null where a text is null or not surely a time."""


def _ways(texts: pa.StringArray, forms: list[_Form]) -> Iterator[_Way]:
    """As the first text of a form is spelt, if there is one; then by that form, and the others."""
    samples = [each for each in texts[:_SAMPLES].to_pylist() if each]
    pairs = ((each, form) for each in samples for form in forms if form.of.fullmatch(each))
    first, its = next(pairs, (None, forms[0]))
    if first is not None and len(texts) >= _MANY:
        yield partial(_spelt_as, first, its)
    yield partial(_by_pattern, its)
    yield from (partial(_by_pattern, each) for each in forms if each is not its)


def _by_pattern(form: _Form, texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    good, _ = only_fitting(texts, pc.match_substring_regex(texts, rf"\A(?:{form.pattern})\z"))
    try:
        return form.cast(good, kind)
    except pa.ArrowInvalid:  # a leap day of another year
        others, _ = only_fitting(good, pc.invert(pc.match_substring(good, _LEAP_DAY)))
        return form.cast(others, kind)


def _spelt_as(first: str, form: _Form, texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Those that are spelt as the first one; none if one of them may be no time.

    A producer spells its times alike: as many digits, and the same marks at the same places. To
    compare all bytes with bounds costs a fifth of what a pattern does. Then the cast alone says
    which of them are times: it refuses a day, an hour and a zone that do not exist.
    """
    nothing, spelt = pa.nulls(len(texts), kind), first.encode()
    as_long = pc.equal(pc.binary_length(texts), len(spelt)).fill_null(False)
    some = texts if as_long.true_count == len(texts) else texts.filter(as_long)
    if not _between(some, *_bounds(spelt)):
        return nothing
    try:
        found = form.cast(some, kind)
    except pa.ArrowInvalid:  # no such day, hour or zone
        return nothing
    return found if some is texts else pc.replace_with_mask(nothing, as_long, found)


def _bounds(first: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each byte may be: a digit stays one, a mark stays as it is. A
    zone may be ahead or behind.
    """
    known = len(_LEAST)
    least, most = bytearray(first), bytearray(first)
    for at, code in enumerate(first):
        if code in b"0123456789":
            least[at], most[at] = (_LEAST[at], _MOST[at]) if at < known else b"09"
        elif at >= known and code in b"+-":
            least[at], most[at] = b"+-"
    return np.frombuffer(least, np.uint8), np.frombuffer(most, np.uint8)


def _between(texts: pa.StringArray, least: np.ndarray, most: np.ndarray) -> bool:
    """Whether each byte of all texts is in its bounds. All have that length, none is null."""
    data, _ = bytes_of(texts)
    rows = np.frombuffer(data, np.uint8).reshape(-1, len(least))
    return bool(((rows >= least) & (rows <= most)).all())


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
    fitting, doubtful = only_fitting(array, fits)
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
    array, doubtful = only_fitting(array, in_range)
    array, more = only_fitting(array, pc.equal(pc.round(array, scale), array))
    return Refined(array.cast(kind), either(doubtful, more))


def _counted(array: pa.Int64Array, kind: pa.TimestampType, per_second: int) -> Refined:
    limit = min(_SECONDS * per_second, 2**62)
    fits = pc.and_(pc.less(array, limit), pc.greater(array, -limit))
    fitting, doubtful = only_fitting(array, fits)
    if per_second <= 10**6:
        return Refined(pc.multiply(fitting, 10**6 // per_second).cast(kind), doubtful)
    micros = pc.divide(fitting, 1000)
    exact = pc.equal(pc.multiply(micros, 1000), fitting)
    micros, uneven = only_fitting(micros, exact)
    return Refined(micros.cast(kind), either(doubtful, uneven))
