"""Single values as Spark reads them: dates, timestamps, decimals, FLOAT.

Dates are days since 1970 and timestamps microseconds since 1970, in the proleptic Gregorian
calendar, in plain integers: years go beyond 9999, where Python's own ``datetime`` ends. Text
without a time zone is in UTC, the time zone of the session.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import SupportsIndex
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from rivermouth.verification.formats.reader import CannotTell, Undecodable

_OFFSET = re.compile(
    r"(?P<sign>[+-])(?P<h>[0-9]{1,2}|[0-9]{2}(?=[0-9]{2}))"
    r"(?:(?P<colon>:?)(?P<m>[0-9]{2})(?:(?P=colon)(?P<s>[0-9]{2}))?)?"
)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
_UTC = ("Z", "UTC", "GMT", "UT")
_DAY_END = 18 * 3600


def ahead_of_utc(zone: str, local: int) -> int:
    """The seconds that a zone is ahead of UTC at a local time (seconds since 1970).

    Raises Undecodable where Java has no such zone, CannotTell where Python does not know it.
    """
    if zone == "Z":
        return 0
    name = zone.strip("".join(map(chr, range(0x21))))
    if name in _UTC:
        return 0
    # Spark also accepts one digit for the hour before a colon, and for the minute at the end.
    name = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", name, count=1)
    name = re.sub(r"([+-])([0-9]{2}):([0-9])$", r"\1\2:0\3", name, count=1)
    for prefix in ("UTC", "GMT", "UT", ""):
        after = name.removeprefix(prefix)
        if name.startswith(prefix) and after[:1] in ("+", "-"):
            return _offset(after)
    if not _REGION.fullmatch(name):
        raise Undecodable(f"not a time zone: {zone!r}")
    if len(name) == 3:
        raise CannotTell(f"the time zone {name} depends on the version of Java")
    return _of_region(name, local)


def _offset(text: str) -> int:
    match = _OFFSET.fullmatch(text)
    if match is None or (match["m"] and len(match["h"]) < 2):
        raise Undecodable(f"not a time zone: {text!r}")
    hour, minute, second = (int(match[part] or 0) for part in ("h", "m", "s"))
    size = hour * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or size > _DAY_END:
        raise Undecodable(f"not a time zone: {text!r}")
    return -size if match["sign"] == "-" else size


def _of_region(name: str, local: int) -> int:
    try:
        naive = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=local)
        ahead = naive.replace(tzinfo=ZoneInfo(name)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError) as fault:
        raise CannotTell(f"the time zone {name} at that time") from fault
    return int(ahead.total_seconds()) if ahead is not None else 0


_D = "[0-9]{1,2}"
_DATE = rf"(?P<sign>[+-])?(?P<year>[0-9]{{4,7}})(?:-(?P<month>{_D})(?:-(?P<day>{_D})"
_TIME = (
    rf"(?P<hour>{_D})(?::(?P<minute>{_D})"
    rf"(?::(?P<second>{_D})(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?"
)
_DATE_TEXT = re.compile(rf"{_DATE}(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(rf"{_DATE}(?:[ T]{_TIME})?)?)?", re.DOTALL)
_NO_DATE = re.compile(rf"T{_D}(?::.*)?|{_D}:.*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?")
TRIMMED = "".join(map(chr, range(0x21))) + "\x7f"
"""What Spark removes at both ends of a text before it casts it."""
_MICROS = 1_000_000
_WIDE = Context(prec=80)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BEYOND_SINGLE = 2.0**128


def days(text: str) -> int:
    """A DATE from text such as ``2026-01-31``; a time after it is ignored."""
    match = _DATE_TEXT.fullmatch(text.strip(TRIMMED))
    if match is None:
        raise Undecodable(f"not a date: {text!r}")
    return _days(match)


def micros(text: str, *, local: bool = False) -> int:
    """A TIMESTAMP from ISO text such as ``2026-01-31T10:00:00.5+01:00``.

    ``local``: its time zone counts for nothing. Raises CannotTell for a time without a date: Spark
    takes the date of the day on which it reads.
    """
    trimmed = text.strip(TRIMMED)
    match = _TIMESTAMP.fullmatch(trimmed)
    if match is None and not local and _NO_DATE.fullmatch(trimmed):
        raise CannotTell("a time without a date")
    if match is None or len(match["year"]) > 6:
        raise Undecodable(f"not a timestamp: {text!r}")
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise Undecodable(f"not a time of day: {text!r}")
    fraction = int((match["fraction"] or "")[:6].ljust(6, "0"))
    here = ((_days(match) * 24 + hour) * 60 + minute) * 60 + second
    ahead = ahead_of_utc(match["zone"], here) if match["zone"] else 0
    found = (here - (0 if local else ahead)) * _MICROS + fraction
    if not -(1 << 63) <= found < 1 << 63:
        raise Undecodable(f"beyond the range of timestamps: {text!r}")
    return found


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """A DECIMAL rounded half up to ``scale``; raises where it needs more digits."""
    if _has_foreign_digits(text):
        raise CannotTell("a number in digits of another script")
    match = _NUMBER.fullmatch(text)
    if match is None or abs(int(match["exponent"] or 0)) >= 1 << 31:
        raise Undecodable(f"not a DECIMAL({precision},{scale}): {text!r}")
    try:
        found = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation as fault:
        raise Undecodable(f"not a DECIMAL({precision},{scale}): {text!r}") from fault
    # Not abs(): it rounds to the digits of the context.
    if found.copy_abs() >= Decimal(10) ** (precision - scale):
        raise Undecodable(f"not a DECIMAL({precision},{scale}): {text!r}")
    return found


def _has_foreign_digits(text: str) -> bool:
    """Whether there are digits outside of ASCII: Java reads most of them, each version more."""
    return not text.isascii() and any(each.isdecimal() and not each.isascii() for each in text)


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


def _days(match: re.Match[str]) -> int:
    year = int((match["sign"] or "") + match["year"])
    month, day = int(match["month"] or 1), int(match["day"] or 1)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1] + (month == 2 and leap):
        raise Undecodable(f"no such day: {match[0]!r}")
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    in_year = sum(_LENGTHS[: month - 1]) + (leap and month > 2) + day - 1
    return before * 365 + leaps + in_year - 719_162  # days from 0001-01-01 to 1970-01-01
