"""Time zones at the end of a timestamp, as Java names them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rivermouth.verify.formats.reader import CannotTell, Undecodable

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
