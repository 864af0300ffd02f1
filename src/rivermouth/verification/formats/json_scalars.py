"""Numbers, dates and times by their text, exactly; and what a pipeline allows of them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa

from rivermouth.verification.formats.json_document import Spelt
from rivermouth.verification.formats.reader import FIELDS, Undecodable, UnknownDecoder, short

UNITS: Mapping[str, tuple[int, int]] = {
    "s": (1_000_000, 1),
    "ms": (1_000, 1),
    "us": (1, 1),
    "ns": (1, 1_000),
}
"""By what a whole number is multiplied, and then divided, to count microseconds."""
_LENIENT = (
    *("number_in_text", "anything_as_text", "repeated_names", "any_case"),
    *("boolean_in_text", "count_in_text", "fraction_in_count", "date_as_time"),
)


@dataclass(frozen=True)
class Settings:
    """``unit`` says what a whole number in a TIMESTAMP column counts; None: it is bad.

    ``cut``: what is less than a microsecond is cut, towards the past. The others are the names
    of ``lenient``. ``fields``: a record that has none of these is bad; none: it need not have one.
    """

    unit: str | None = None
    cut: bool = False
    number_in_text: bool = False
    anything_as_text: bool = False
    repeated_names: bool = False
    any_case: bool = False
    boolean_in_text: bool = False
    count_in_text: bool = False
    fraction_in_count: bool = False
    date_as_time: bool = False
    fields: tuple[str, ...] = ()


def settings_of(decoder: Mapping[str, Any]) -> Settings:
    """From ``decoder`` of an entry. Raises UnknownDecoder for what this version does not know."""
    times = decoder.get("timestamps", {})
    lenient = decoder.get("lenient", [])
    if not isinstance(times, Mapping) or not isinstance(lenient, list):
        raise UnknownDecoder("settings of another form")
    unit, fraction = times.get("unit"), times.get("fraction")
    empty = decoder.get("on_empty")
    odd = sorted({*decoder} - {"timestamps", "lenient", "on_empty", FIELDS})
    odd += [f"timestamps.{each}" for each in sorted({*times} - {"unit", "fraction"})]
    odd += [str(each) for each in lenient if each not in _LENIENT]
    odd += [f"unit {unit}"] if unit is not None and str(unit) not in UNITS else []
    odd += [f"fraction {fraction}"] if fraction not in (None, "cut") else []
    odd += [f"on_empty {empty}"] if empty not in (None, "null") else []
    if odd:
        raise UnknownDecoder(f"the setting {odd[0]}")
    fields = () if empty else tuple(decoder.get(FIELDS, ()))
    allowed = {each: each in lenient for each in _LENIENT}
    return Settings(unit, fraction == "cut", fields=fields, **allowed)


_PARTS = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)([0-9]+))?")
_JSON = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ALONE = re.compile(r"-?[0-9]+")
_LONGEST = 12
"""An exponent of more digits is greater than the number of digits of any record."""
_MOST = 10**_LONGEST
_WIDEST = 19
"""The digits of the greatest BIGINT."""


def is_json_number(text: str) -> bool:
    """Whether a text is spelt as JSON spells numbers."""
    return _JSON.fullmatch(text) is not None


def is_decimal_text(text: str) -> bool:
    """Whether a text is one that a DECIMAL column takes."""
    return _DECIMAL.fullmatch(text) is not None


def exact(text: str) -> tuple[int, str, int]:
    """Sign (-1 or 1), digits and power of ten of a number; the digits neither begin nor end with 0.

    The digits of zero are empty. ``text`` is a JSON number or text of a DECIMAL.
    """
    match = _PARTS.fullmatch(text)
    if match is None:
        raise Undecodable(f"not a number: {short(text)}")
    sign, whole, part, direction, power = match.groups("")
    digits = (whole + part).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 1, "", 0
    power = power.lstrip("0")
    shift = _MOST if len(power) > _LONGEST else int(power or "0")
    moved = (-shift if direction == "-" else shift) + len(digits) - len(significant) - len(part)
    return (-1 if sign == "-" else 1), significant, moved


def whole(text: str, widest: int = _WIDEST) -> int:
    """The value of a number that is whole, of at most ``widest`` digits. Raises Undecodable."""
    sign, digits, power = exact(text)
    if power < 0 or len(digits) + power > widest:
        raise Undecodable(f"not a whole number of that size: {short(text)}")
    return sign * int(digits + "0" * power or "0")


def decimal(text: str, kind: pa.DataType) -> Decimal:
    """A DECIMAL that loses no digit of the number. Raises Undecodable."""
    precision, scale = kind.precision, kind.scale
    sign, digits, power = exact(text)
    if power < -scale or (digits and len(digits) + power > precision - scale):
        raise Undecodable(f"not DECIMAL({precision},{scale}): {short(text)}")
    units = tuple(map(int, digits + "0" * (power + scale))) if digits else (0,)
    return Decimal((sign < 0, units, -scale))


def floating(text: str, kind: pa.DataType) -> float:
    """The FLOAT or DOUBLE that is nearest to a JSON number. Raises Undecodable."""
    if _ALONE.fullmatch(text):
        # Digits alone are an integer for whoever wrote them, and more of them fit no DOUBLE.
        found = _exactly(int(text), kind) if len(text) < 400 else None
    else:
        found = float(text) if kind.bit_width == 64 else rounded(text)
    if found is None or found in (float("inf"), float("-inf")):
        raise Undecodable(f"not {kind}: {short(text)}")
    return found


def from_int(number: int, kind: pa.DataType) -> float:
    """A FLOAT or DOUBLE of digits alone, which it must hold exactly. Raises Undecodable."""
    found = _exactly(number, kind)
    if found is None:
        raise Undecodable(f"not exactly {kind}: {str(number)[:60]}")
    return found


def _exactly(number: int, kind: pa.DataType) -> float | None:
    try:
        found = float(number) if kind.bit_width == 64 else rounded(number)
    except OverflowError:
        return None
    return found if found == number else None


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOUR, _SIXTY = "([01][0-9]|2[0-3])", "([0-5][0-9])"
_TIME = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]{_HOUR}:{_SIXTY}"
    rf"(?::{_SIXTY}(?:\.([0-9]{{1,9}}))?)?([Zz]|[+-]{_HOUR}(?::?{_SIXTY})?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST = -62_135_596_800_000_000
_UNTIL = 253_402_300_800_000_000
"""The years 1 to 9999 in UTC, in microseconds since 1970."""
_DIGITS = 21
"""The digits of the greatest number of nanoseconds in these years."""


def days(text: Any) -> int:
    """A DATE from ``2026-01-31``. Raises Undecodable."""
    if type(text) is not str or not _DATE.fullmatch(text):
        raise Undecodable(f"not a date: {short(text)}")
    return _days(text)


def timestamps(kind: pa.DataType, settings: Settings) -> Callable[[Any], int]:
    """What reads a TIMESTAMP, or a TIMESTAMP_NTZ where the type has no zone."""
    zoned, cut, unit = kind.tz is not None, settings.cut, settings.unit
    counts = zoned and unit is not None

    def convert(value: Any) -> int:
        if counts and settings.count_in_text and type(value) is str and is_json_number(value):
            value = Spelt(value)
        if type(value) is str and settings.date_as_time and _DATE_ALONE.fullmatch(value):
            return _days(value) * 86_400_000_000
        if type(value) is str:
            return _micros(value, zoned=zoned, cut=cut)
        if unit is None or not zoned or type(value) not in (int, Spelt):
            raise Undecodable(f"not a time as text: {short(value)}")
        if settings.fraction_in_count and type(value) is Spelt:
            return _with_fraction(value, unit, cut=cut)
        number = value if type(value) is int else whole(value, _DIGITS)
        return _counted(number, unit, cut=cut)

    return convert


_DATE_ALONE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOST_DIGITS = 60


def _with_fraction(text: str, unit: str, *, cut: bool) -> int:
    """Microseconds from a number of units that may have a fraction. Raises Undecodable."""
    try:
        return _counted(whole(text, _DIGITS), unit, cut=cut)
    except Undecodable:
        if len(text) > _MOST_DIGITS:
            raise
    sign, digits, exponent = Decimal(text).as_tuple()
    times, by = UNITS[unit]
    if not isinstance(exponent, int) or abs(exponent) > 2 * _MOST_DIGITS:
        raise Undecodable(f"not a time in {unit}: {short(text)}")
    number = int("".join(map(str, digits))) * (-1 if sign else 1) * times
    number, by = (number * 10**exponent, by) if exponent > 0 else (number, by * 10**-exponent)
    found, rest = divmod(number, by)
    if (rest and not cut) or not _FIRST <= found < _UNTIL:
        raise Undecodable(f"not a time in {unit}: {short(text)}")
    return found


def _counted(number: int, unit: str, *, cut: bool) -> int:
    """Microseconds from a number of units. Raises Undecodable."""
    times, by = UNITS[unit]
    found, rest = divmod(number * times, by)
    if (rest and not cut) or not _FIRST <= found < _UNTIL:
        raise Undecodable(f"not a time in {unit}: {number}")
    return found


def _micros(text: str, *, zoned: bool, cut: bool) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise Undecodable(f"not a time: {short(text)}")
    day, hour, minute, second, fraction, zone, ahead_h, ahead_m = match.groups()
    minutes = (_days(day) * 24 + int(hour)) * 60 + int(minute)
    if zone:
        if not zoned:
            raise Undecodable(f"a time with a zone: {short(text)}")
        if ahead_h:
            ahead = int(ahead_h) * 60 + int(ahead_m or 0)
            minutes += ahead if zone[0] == "-" else -ahead
    found = (minutes * 60 + int(second or 0)) * 1_000_000
    if fraction:
        found += int(fraction[:6].ljust(6, "0"))
        if not cut and fraction[6:].strip("0"):
            raise Undecodable(f"digits after the microsecond: {short(text)}")
    if not _FIRST <= found < _UNTIL:
        raise Undecodable(f"not in the years 1 to 9999 in UTC: {short(text)}")
    return found


@lru_cache(1 << 12)
def _days(text: str) -> int:
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:])).toordinal() - _EPOCH
    except ValueError as fault:
        raise Undecodable(f"no such day: {short(text)}") from fault


_BEYOND_SINGLE = 2.0**128


def single(value: float) -> float:
    """A FLOAT: the value rounded to single precision; infinite where it is too large for that."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def rounded(value: str | SupportsIndex) -> float:
    """The FLOAT next to a number, in one step: by way of a DOUBLE it might be the one beside it."""
    try:
        wide = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf") if int(value) > 0 else float("-inf")
    near = single(wide)
    if near == wide or wide != wide:
        return near
    towards = np.float32(np.copysign(np.inf, wide - near))
    with np.errstate(over="ignore"):  # next to the largest FLOAT
        other = float(np.nextafter(np.float32(near), towards))
    ends = [np.copysign(_BEYOND_SINGLE, each) if np.isinf(each) else each for each in (near, other)]
    exact = Decimal(value if isinstance(value, str) else int(value))
    if (ends[0] + ends[1]) / 2 != wide or exact == Decimal(wide):
        return near
    return max(near, other) if exact > Decimal(wide) else min(near, other)
