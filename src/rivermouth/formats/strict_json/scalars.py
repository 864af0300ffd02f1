"""Single values as they are spelt: numbers, dates, times, Base64; and why one is bad."""

from __future__ import annotations

import base64
import binascii
import ctypes
import math
import re
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa

from rivermouth.formats.strict_json.types import Unit

_MOST = 200
_SHOWN = 40


class Bad(Exception):
    """The record does not follow the specification. ``reason`` is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason = reason
        self._path: list[str] = []

    def within(self, place: str) -> Bad:
        """The same, found in the field ``.name`` or the element ``[3]``."""
        self._path.append(place)
        return self

    @property
    def reason(self) -> str:
        path = "".join(reversed(self._path)).removeprefix(".")
        if len(path) > _MOST // 2:
            path = f"{path[: _MOST // 2 - 1]}…"
        text = f"{path}: {self._reason}" if path else self._reason
        return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def shown(value: object) -> str:
    """What a record has, for a message: short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, tuple):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value)
    text = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return f'the text "{text}"' if type(value) is str else f"the number {text}"


class Number(str):
    """A JSON number, as it is spelt."""

    __slots__ = ()


class Object(tuple[object, ...]):
    """The members of an object, pairs of name and value, and how it is spelt."""

    spelt: str


class Array(list[object]):
    """The elements of an array, and how it is spelt."""

    __slots__ = ("spelt",)
    spelt: str


def decoded(array: pa.StringArray) -> tuple[pa.BinaryArray, np.ndarray]:
    """The bytes, null where the text is not base64 by the letter, and where that is."""
    found = [None if each is None else from_text(each) for each in array.to_pylist()]
    result = pa.array(found, pa.binary())
    doubtful = result.is_null().to_numpy(zero_copy_only=False)
    return result, doubtful & array.is_valid().to_numpy(zero_copy_only=False)


def from_text(text: str) -> bytes | None:
    """The bytes; None for text that an encoder of base64 does not write."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found).decode("ascii") == text else None


JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)([0-9]+))?")
_FAR = 10**12
"""Stands for every exponent that is larger: no text has so many digits."""
_FLOAT_MOST = float(np.finfo(np.float32).max)
_FLOAT_EDGE = 2.0**128 - 2.0**103
"""Half-way between the largest FLOAT and what would be the next one."""


def parts(text: str) -> tuple[str, str, int] | None:
    """Sign, digits without zeros at either end, and the power of ten of the last digit.

    None for what is not the text of a DECIMAL. Zero has no digits, and the power 0.
    """
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, before, after, alone, exponent_sign, exponent = found.groups(default="")
    fraction = after or alone
    digits = (before + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return sign, "", 0
    exponent = exponent.lstrip("0")
    power = _FAR if len(exponent) > 12 else int(exponent or 0)
    power = -power if exponent_sign == "-" else power
    return sign, significant, power - len(fraction) + len(digits) - len(significant)


def whole(text: str, most_digits: int = 40) -> int | None:
    """The value, if it is whole and has no more than so many digits."""
    found = parts(text)
    if found is None:
        return None
    sign, digits, power = found
    if power < 0 or len(digits) + power > most_digits:
        return None
    value = int(digits + "0" * power or "0")
    return -value if sign == "-" else value


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """The exact value. Raises Bad if it has more digits than the type, or is no number."""
    found = parts(text)
    if found is None:
        raise Bad(f"{shown(str(text))} is not a number")
    sign, digits, power = found
    if -power > scale:
        raise Bad(f"{_cut(text)} has more than {scale} digits after the point")
    if digits and len(digits) + power > precision - scale:
        raise Bad(f"{_cut(text)} has more than {precision - scale} digits before the point")
    return Decimal(f"{sign}{digits or '0'}e{power}")


def double(text: str) -> float:
    """The nearest DOUBLE. Raises Bad where it is infinite, or loses a digit of a whole number."""
    value = float(text)
    return _kept(text, value, "DOUBLE")


def single(text: str) -> float:
    """The nearest FLOAT, by the same rules.

    Not all nearest FLOATs of the nearest DOUBLE are right: where that DOUBLE is half-way between
    two of them, the digits decide.
    """
    wide = float(text)
    value = ctypes.c_float(wide).value
    if math.isinf(value) and abs(wide) == _FLOAT_EDGE:
        if Decimal(text).copy_abs() < Decimal(_FLOAT_EDGE):
            value = math.copysign(_FLOAT_MOST, wide)
    elif math.isfinite(value) and value != wide:
        other = _next_single(value, wide)
        if math.isfinite(other) and (value + other) / 2 == wide:
            exact = Decimal(text)
            if exact != Decimal(wide):
                value = max(value, other) if exact > Decimal(wide) else min(value, other)
    return _kept(text, value, "FLOAT")


def _next_single(value: float, towards: float) -> float:
    """The FLOAT beside the FLOAT ``value``; infinite beyond the last one."""
    direction = np.float32(math.copysign(math.inf, towards - value))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(value), direction))


def _kept(text: str, value: float, name: str) -> float:
    if math.isinf(value):
        raise Bad(f"{_cut(text)} is out of the range of {name}")
    if not ("." in text or "e" in text or "E" in text) and int(text) != int(value):
        raise Bad(f"{name} cannot hold all digits of {_cut(text)}")
    return value


def _cut(text: str) -> str:
    return shown(text).removeprefix('the text "').removeprefix("the number ").removesuffix('"')


_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_FIRST = (date(1, 1, 1).toordinal() - _EPOCH) * _DAY
_END = (date(9999, 12, 31).toordinal() - _EPOCH + 1) * _DAY
_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@lru_cache(maxsize=1024)
def days(text: str) -> int:
    """Days since 1970-01-01. Raises Bad for another form, or a day that does not exist."""
    found = _DATE.fullmatch(text)
    if found is None:
        raise Bad(f"{shown(text)} is not a date as 2026-01-31")
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).toordinal() - _EPOCH
    except ValueError:
        raise Bad(f"{shown(text)} is not a day of the years 0001 to 9999") from None


def micros(text: str, *, zone: bool, cut: bool, day: bool = False) -> int:
    """Microseconds since 1970-01-01 00:00, in UTC if a ``zone`` may stand in the text. ``day``: a
    date alone is its midnight.

    Raises Bad for another form, a time that does not exist, or digits that would be lost.
    """
    if day and len(text) == len("2026-01-31"):
        return days(text) * _DAY
    found = _TIME.fullmatch(text)
    if found is None:
        raise Bad(f"{shown(text)} is not a time as 2026-01-31T10:00:00{'Z' if zone else ''}")
    date, hour, minute, second, fraction, zulu, sign, ahead, ahead_minutes = found.groups("")
    if not zone and (zulu or sign):
        raise Bad(f"{shown(text)} has a zone, which TIMESTAMP_NTZ does not take")
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise Bad(f"{shown(text)} is not a time of a day")
    if int(ahead or 0) > 23 or int(ahead_minutes or 0) > 59:
        raise Bad(f"{shown(text)} has a zone that does not exist")
    if fraction[6:].strip("0") and not cut:
        raise Bad(f"{shown(text)} has a part of a microsecond")
    minutes = int(ahead or 0) * 60 + int(ahead_minutes or 0)
    minutes = int(hour) * 60 + int(minute) - (-minutes if sign == "-" else minutes)
    seconds = minutes * 60 + int(second or 0)
    value = days(date) * _DAY + seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return _in_years(value, text)


def counted(number: str, unit: Unit, *, cut: bool, fraction: bool = False) -> int:
    """Microseconds since 1970-01-01 in UTC from a number that counts ``unit``. ``fraction``: it may
    have one.
    """
    value = whole(number)
    if value is None and fraction:
        return _counted(number, unit, cut=cut)
    if value is None:
        raise Bad(f"{shown(number)} is not a whole number, or out of the years 0001 to 9999")
    found, rest = divmod(value * 1_000_000, _PER_SECOND[unit])
    if rest and not cut:
        raise Bad(f"{shown(number)} has a part of a microsecond")
    return _in_years(found, number)


_LONGEST_COUNT = 60
"""A count with a fraction has at most so many characters: a time has 26 digits."""
_EXACT = Context(prec=200)


def _counted(number: str, unit: Unit, *, cut: bool) -> int:
    value = Decimal(number) if len(number) <= _LONGEST_COUNT else None
    if value is None or abs(value.adjusted()) > _LONGEST_COUNT:
        raise Bad(f"{shown(number)} is not in the years 0001 to 9999 of UTC")
    us = _EXACT.divide(_EXACT.multiply(value, Decimal(1_000_000)), Decimal(_PER_SECOND[unit]))
    found = us.to_integral_value(ROUND_FLOOR, _EXACT)
    if found != us and not cut:
        raise Bad(f"{shown(number)} has a part of a microsecond")
    return _in_years(int(found), number)


def _in_years(value: int, text: str) -> int:
    if not _FIRST <= value < _END:
        raise Bad(f"{shown(text)} is not in the years 0001 to 9999 of UTC")
    return value
