"""Dates and times that are spelt."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from rivermouth.formats.strict_json.faults import Bad, shown
from rivermouth.formats.strict_json.numbers import whole
from rivermouth.formats.strict_json.settings import Unit

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


def micros(text: str, *, zone: bool, cut: bool) -> int:
    """Microseconds since 1970-01-01 00:00, in UTC if a ``zone`` may stand in the text.

    Raises Bad for another form, a time that does not exist, or digits that would be lost.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise Bad(f"{shown(text)} is not a time as 2026-01-31T10:00:00{'Z' if zone else ''}")
    day, hour, minute, second, fraction, zulu, sign, ahead, ahead_minutes = found.groups("")
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
    value = days(day) * _DAY + seconds * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    return _in_years(value, text)


def counted(number: str, unit: Unit, *, cut: bool) -> int:
    """Microseconds since 1970-01-01 in UTC from a number that counts ``unit``."""
    value = whole(number)
    if value is None:
        raise Bad(f"{shown(number)} is not a whole number, or out of the years 0001 to 9999")
    found, rest = divmod(value * 1_000_000, _PER_SECOND[unit])
    if rest and not cut:
        raise Bad(f"{shown(number)} has a part of a microsecond")
    return _in_years(found, number)


def _in_years(value: int, text: str) -> int:
    if not _FIRST <= value < _END:
        raise Bad(f"{shown(text)} is not in the years 0001 to 9999 of UTC")
    return value
