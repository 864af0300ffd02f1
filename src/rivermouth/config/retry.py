"""How long something that passes by itself is tried again, and how long each pause is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.settings import Model
from rivermouth.config.value_types import Duration

_TOTAL, _LONGEST = timedelta(minutes=10), timedelta(seconds=60)
_FIRST = timedelta(milliseconds=200)
_ORDER = "from may not be longer than up_to, and up_to not longer than for"
_UNIT_S = 0.001


def _at_most(field: str, key: str) -> AfterValidator:
    """A check of a pause that the file gives: not above the setting ``field``, written ``key``."""

    def check(value: timedelta, info: ValidationInfo) -> timedelta:
        if not value:
            fix = "write for: 0s if nothing is to be tried again"
            raise Refused(Fault(Kind.BAD_VALUE, "{path} must be longer than 0", fix=fix))
        # A faulty one is not in ``data``, and a value that is read alone has no ``data``.
        limit = (info.data or {}).get(field)
        if limit is not None and value > limit:
            message = f"{{path}} is {{value}}, which is longer than {key}"
            raise Refused(Fault(Kind.BAD_VALUE, message, fix=_ORDER))
        return value

    return AfterValidator(check)


class Retry(Model):
    """How long a try that failed on something that passes by itself is made again.

    A default is not checked against what the file gives: with ``for: 10s`` alone the longest
    pause is what is left of the ten seconds.
    """

    total: Annotated[
        Duration,
        Field(
            validation_alias="for",
            description="For how long in total. `0s` means: do not try again.",
        ),
    ] = _TOTAL
    longest: Annotated[
        Duration,
        _at_most("total", "for"),
        Field(validation_alias="up_to", description="The longest pause."),
    ] = _LONGEST
    first: Annotated[
        Duration,
        _at_most("longest", "up_to"),
        Field(
            validation_alias="from",
            description="The first pause. Each pause is twice the one before, minus a random part"
            " of up to a half.",
        ),
    ] = _FIRST


def pauses(
    retry: Retry, random: Callable[[], float], clock: Callable[[], float]
) -> Iterator[float]:
    """Seconds to wait before each further try. Ask for the first one when a try has failed.

    ``random`` gives numbers from 0 up to 1, ``clock`` seconds that only grow. The total time
    counts from the first question and includes what the tries themselves take. The last pause
    is cut so that it ends with the total time; after it there is none.
    """
    ends = clock() + retry.total.total_seconds()
    longest = retry.longest.total_seconds()
    pause = min(retry.first.total_seconds(), longest)
    while (left := ends - clock()) >= _UNIT_S:
        yield min(pause * (1 - random() / 2), left)
        pause = min(pause * 2, longest)
