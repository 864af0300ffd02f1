"""Single values as Spark reads them: dates, timestamps, decimals, FLOAT.

Dates are days since 1970 and timestamps microseconds since 1970, in the proleptic Gregorian
calendar, in plain integers: years go from -9999 to 999999, and Python's own ``datetime`` ends at
9999. Text without a time zone is in UTC, the time zone of the session.
"""

from __future__ import annotations

import re
import struct
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rivermouth.verify.formats.reader import Undecodable

_DATE = r"(?P<year>[+-]?\d{4,6})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2}))?)?"
_TIME = r"(?P<hour>\d{1,2})(:(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<fraction>\d*))?)?)?"
_DATE_TEXT = re.compile(rf"\s*{_DATE}([ T].*)?\s*", re.DOTALL)
_TIMESTAMP = re.compile(rf"\s*{_DATE}([ T](?:{_TIME}\s*(?P<zone>\S.*?)?)?)?\s*", re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<h>\d{1,2}):?(?P<m>\d{1,2})?(:(?P<s>\d\d))?")
_MICROS = 1_000_000
_WIDE = Context(prec=80)
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days(text: str) -> int:
    """A DATE from text such as ``2026-01-31``; a time after it is ignored."""
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise Undecodable(f"not a date: {text!r}")
    return _days(match)


def micros(text: str, *, zone: bool = True) -> int:
    """A TIMESTAMP from ISO text such as ``2026-01-31T10:00:00.5+01:00``."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match["zone"] and not zone):
        raise Undecodable(f"not a timestamp: {text!r}")
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        raise Undecodable(f"not a time of day: {text!r}")
    fraction = int((match["fraction"] or "")[:6].ljust(6, "0"))
    local = ((_days(match) * 24 + hour) * 60 + minute) * 60 + second
    return (local - _offset(match["zone"], local)) * _MICROS + fraction


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """A DECIMAL rounded half up to ``scale``; raises where it needs more digits."""
    try:
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation as fault:
        raise Undecodable(f"not a DECIMAL({precision},{scale}): {text!r}") from fault
    if not rounded.is_finite() or abs(rounded) >= Decimal(10) ** (precision - scale):
        raise Undecodable(f"not a DECIMAL({precision},{scale}): {text!r}")
    return rounded


def single(value: float) -> float:
    """A FLOAT: the value rounded to single precision; infinite where it is too large for that."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _days(match: re.Match[str]) -> int:
    year, month, day = int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1] + (month == 2 and leap):
        raise Undecodable(f"no such day: {match[0]!r}")
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    in_year = sum(_LENGTHS[: month - 1]) + (leap and month > 2) + day - 1
    return before * 365 + leaps + in_year - 719_162  # days from 0001-01-01 to 1970-01-01


def _offset(zone: str | None, local: int) -> int:
    """The seconds that a zone is ahead of UTC at a local time (seconds since 1970)."""
    if zone is None or zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        size = int(match["h"]) * 3600 + int(match["m"] or 0) * 60 + int(match["s"] or 0)
        return -size if match["sign"] == "-" else size
    try:
        naive = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=local)
        ahead = naive.replace(tzinfo=ZoneInfo(zone)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError) as fault:
        raise Undecodable(f"not a time zone: {zone!r}") from fault
    return int(ahead.total_seconds()) if ahead is not None else 0
