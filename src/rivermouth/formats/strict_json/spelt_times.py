"""Columns of dates and times from texts.

A producer spells its times alike: as many digits, and the same marks at the same places. To compare
all bytes with bounds costs a fifth of what a pattern does. Then the cast alone says which of them
are times: it refuses a day, an hour and a zone that do not exist. A pattern looks at the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import bytes_of, mask_of
from rivermouth.formats.strict_json.refined import Refined, kept

# Years in which no zone leads out of the range.
_LEAP = r"(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|1200|1600|2000|2400|2800)"
_DAY = (
    r"(?:[12][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|{_LEAP}-02-29)"
)
_HOUR = r"(?:[01][0-9]|2[0-3])"
_CLOCK = rf"[T ]{_HOUR}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_DATE = rf"\A{_DAY}\z"
_LOCAL = rf"\A{_DAY}{_CLOCK}\z"
_ZONED = rf"\A{_DAY}{_CLOCK}(?:Z|[+-]{_HOUR}:?[0-5][0-9])\z"
_LEAST, _MOST = b"1000-00-00T00:00:00", b"2999-19-39T29:59:59"
"""What the digits of all these forms are between, a day that the cast refuses aside. Behind them
stand digits of a fraction or a zone.
"""
_SAMPLES = 8
_FEW = 50
"""So few texts are left to the exact way: to compile a pattern costs as much."""

Way = Callable[[pa.StringArray, pa.DataType], pa.Array]
"""From texts to times, null where a text is null or not surely a time."""


def times_of(texts: pa.StringArray, kind: pa.DataType) -> Refined:
    """A date or timestamp from each text; doubtful where it is not of the usual forms."""
    if pa.types.is_date(kind):
        return _in_turn(texts, kind, _alike(_DATE), _by_form(_DATE))
    if not kind.tz:
        return _in_turn(texts, kind, _alike(_LOCAL), _by_form(_LOCAL))
    # Without a zone a TIMESTAMP is in UTC.
    ways = _alike(_ZONED), _alike(_LOCAL), _by_form(_ZONED), _by_form(_LOCAL)
    return _in_turn(texts, kind, *ways)


def _in_turn(texts: pa.StringArray, kind: pa.DataType, *ways: Way) -> Refined:
    """By each way what those before it have left."""
    found, left = pa.nulls(len(texts), kind), texts.is_valid()
    for way in ways:
        if left.true_count <= _FEW:
            break
        if left.true_count == len(texts):
            found = way(texts, kind)
        else:
            found = pc.replace_with_mask(found, left, way(texts.filter(left), kind))
        left = pc.and_(found.is_null(), texts.is_valid())
    return Refined(found, mask_of(left) if left.true_count else None)


def _by_form(form: str) -> Way:
    """By the form of what the cast surely reads right."""

    def way(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
        good, _ = kept(texts, pc.match_substring_regex(texts, form))
        return _cast(good, form, kind)

    return way


def _alike(form: str) -> Way:
    """Those that are spelt as the first one of the form; none if one of them may be no time."""

    def way(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
        nothing = pa.nulls(len(texts), kind)
        place = pc.index(pc.match_substring_regex(texts[:_SAMPLES], form), True).as_py()
        if place < 0:
            return nothing
        first = texts[place].as_py().encode()
        alike = pc.equal(pc.binary_length(texts), len(first)).fill_null(False)
        some = texts if alike.true_count == len(texts) else texts.filter(alike)
        if not _between(some, *_bounds(first)):
            return nothing
        try:
            found = _cast(some, form, kind)
        except pa.ArrowInvalid:  # no such day, hour or zone
            return nothing
        return found if some is texts else pc.replace_with_mask(nothing, alike, found)

    return way


def _cast(texts: pa.StringArray, form: str, kind: pa.DataType) -> pa.Array:
    local = pa.types.is_timestamp(kind) and form == _LOCAL
    return texts.cast(pa.timestamp("us")).cast(kind) if local else texts.cast(kind)


def _bounds(first: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that each byte may be: a digit stays one, a mark stays as it is."""
    known = len(_LEAST)
    least, most = (
        bytes(
            (bound[at] if at < known else other) if code in b"0123456789" else code
            for at, code in enumerate(first)
        )
        for bound, other in ((_LEAST, ord("0")), (_MOST, ord("9")))
    )
    return np.frombuffer(least, np.uint8), np.frombuffer(most, np.uint8)


def _between(texts: pa.StringArray, least: np.ndarray, most: np.ndarray) -> bool:
    """Whether each byte of all texts is in its bounds. All have that length, none is null."""
    data, _ = bytes_of(texts)
    rows = np.frombuffer(data, np.uint8).reshape(-1, len(least))
    return bool(((rows >= least) & (rows <= most)).all())
