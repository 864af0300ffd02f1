"""Columns of dates and times from texts.

A producer spells its times alike: as many digits, and the same marks at the same places. To compare
all bytes with bounds costs a fifth of what a pattern does. Then the cast alone says which of them
are times: it refuses a day, an hour and a zone that do not exist. A pattern looks at the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import bytes_of, mask_of
from rivermouth.formats.strict_json.refined import Refined, kept

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
    """A date or timestamp from each text; doubtful where it is not of the usual forms."""
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
        yield partial(_alike, first, its)
    yield partial(_by_pattern, its)
    yield from (partial(_by_pattern, each) for each in forms if each is not its)


def _by_pattern(form: _Form, texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    good, _ = kept(texts, pc.match_substring_regex(texts, rf"\A(?:{form.pattern})\z"))
    try:
        return form.cast(good, kind)
    except pa.ArrowInvalid:  # a leap day of another year
        usual, _ = kept(good, pc.invert(pc.match_substring(good, _LEAP_DAY)))
        return form.cast(usual, kind)


def _alike(first: str, form: _Form, texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Those that are spelt as the first one; none if one of them may be no time."""
    nothing, spelt = pa.nulls(len(texts), kind), first.encode()
    alike = pc.equal(pc.binary_length(texts), len(spelt)).fill_null(False)
    some = texts if alike.true_count == len(texts) else texts.filter(alike)
    if not _between(some, *_bounds(spelt)):
        return nothing
    try:
        found = form.cast(some, kind)
    except pa.ArrowInvalid:  # no such day, hour or zone
        return nothing
    return found if some is texts else pc.replace_with_mask(nothing, alike, found)


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
