"""Names and times that Kafka cannot be asked for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rivermouth.config.problems import quoted
from rivermouth.config.start import LAST, is_beyond_utc
from rivermouth.config.topics import LETTERS, is_legal
from rivermouth.errors import RangesRefused

_FIRST = "datetime(1970, 1, 1, tzinfo=timezone.utc)"


def check_topics(names: Iterable[str]) -> None:
    """Raise RangesRefused for a name that no topic can have: Kafka tells less of it."""
    wrong = [each for each in names if not is_legal(each)]
    if wrong:
        raise RangesRefused(
            "no topic can have that name",
            where="topic",
            expected=f"a name of {LETTERS}",
            found=", ".join(map(quoted, wrong)),
            remedy="Correct the name of the topic",
        )


def zoned(at: datetime) -> datetime:
    """The time, if it has a zone. Raises RangesRefused."""
    if at.utcoffset() is None:
        remedy = "Add one: datetime(2026, 11, 23, tzinfo=timezone.utc)"
        raise RangesRefused("a time without a zone", found=at.isoformat(), remedy=remedy)
    return at


def record_time(at: datetime) -> datetime:
    """The time, if Kafka can be asked for records of it. Raises RangesRefused.

    That is one with a zone, from 1970 on: Kafka takes a negative number for an end of the log.
    """
    if zoned(at).timestamp() < 0:
        raise RangesRefused(
            "a time before 1970, which Kafka cannot be asked for",
            expected="a time from 1970-01-01T00:00:00Z on",
            found=at.isoformat(),
            remedy=f"To begin with the first record, write {_FIRST}",
        )
    if is_beyond_utc(at):
        raise RangesRefused(
            "a time after the year 9999 in UTC",
            expected=LAST,
            found=at.isoformat(),
            remedy="Write an earlier one",
        )
    return at
