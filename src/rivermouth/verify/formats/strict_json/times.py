"""Dates and times by their text: days and microseconds since 1970, of the years 1 to 9999."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Undecodable, shown
from rivermouth.verify.formats.strict_json.document import Spelt
from rivermouth.verify.formats.strict_json.numbers import whole
from rivermouth.verify.formats.strict_json.settings import UNITS, Settings

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
        raise Undecodable(f"not a date: {shown(text)}")
    return _days(text)


def timestamps(kind: pa.DataType, settings: Settings) -> Callable[[Any], int]:
    """What reads a TIMESTAMP, or a TIMESTAMP_NTZ where the type has no zone."""
    zoned, cut, unit = kind.tz is not None, settings.cut, settings.unit

    def convert(value: Any) -> int:
        if type(value) is str:
            return _micros(value, zoned=zoned, cut=cut)
        if unit is None or not zoned or type(value) not in (int, Spelt):
            raise Undecodable(f"not a time as text: {shown(value)}")
        number = value if type(value) is int else whole(value, _DIGITS)
        return _counted(number, unit, cut=cut)

    return convert


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
        raise Undecodable(f"not a time: {shown(text)}")
    day, hour, minute, second, fraction, zone, ahead_h, ahead_m = match.groups()
    minutes = (_days(day) * 24 + int(hour)) * 60 + int(minute)
    if zone:
        if not zoned:
            raise Undecodable(f"a time with a zone: {shown(text)}")
        if ahead_h:
            ahead = int(ahead_h) * 60 + int(ahead_m or 0)
            minutes += ahead if zone[0] == "-" else -ahead
    found = (minutes * 60 + int(second or 0)) * 1_000_000
    if fraction:
        found += int(fraction[:6].ljust(6, "0"))
        if not cut and fraction[6:].strip("0"):
            raise Undecodable(f"digits after the microsecond: {shown(text)}")
    if not _FIRST <= found < _UNTIL:
        raise Undecodable(f"not in the years 1 to 9999 in UTC: {shown(text)}")
    return found


@lru_cache(1 << 12)
def _days(text: str) -> int:
    try:
        return date(int(text[:4]), int(text[5:7]), int(text[8:])).toordinal() - _EPOCH
    except ValueError as fault:
        raise Undecodable(f"no such day: {shown(text)}") from fault
