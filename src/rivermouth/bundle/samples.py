"""Records for the test of a new project: good ones, by the columns of each pipeline."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, timedelta

from rivermouth.config import Column, Config

_EACH = 2
_DAYS = timedelta(days=40)
"""Times lie so far apart that windows hold one each."""


def samples(config: Config) -> Mapping[str, str]:
    """By pipeline: lines of JSON, each of which becomes a row of its own.

    A pipeline that sends its records, or has code of its own, has none: what becomes of them only
    their owner knows.
    """
    found: dict[str, str] = {}
    for place, (name, pipeline) in enumerate(config.pipelines.items()):
        if not (pipeline.made_by or pipeline.shape.sends):
            numbers = range(place * _EACH + 1, place * _EACH + 1 + _EACH)
            found[name] = "".join(f"{record(pipeline.columns, n)}\n" for n in numbers)
    return found


def record(columns: tuple[Column, ...], number: int) -> str:
    """One record. What is nested is left out, so it is null."""
    return json.dumps({each.name: value(each, number) for each in columns if each.primitive})


def value(column: Column, number: int) -> object:
    """What JSON has for a value of the column; another one for each small number."""
    if column.kind == "DECIMAL":
        return _decimal(column.type, number)
    day = date(2026, 1, 1) + number * _DAYS
    values: dict[str, object] = {
        **dict.fromkeys(("SMALLINT", "INT", "BIGINT"), number),
        "TINYINT": number % 128,
        "BOOLEAN": number % 2 == 0,
        "FLOAT": number + 0.5,
        "DOUBLE": number + 0.5,
        "BINARY": b64encode(str(number).encode()).decode(),
        "DATE": str(day),
        "TIMESTAMP": f"{day}T12:00:00Z",
        "TIMESTAMP_NTZ": f"{day}T12:00:00",
    }
    return values.get(column.kind, f"{column.name} {number}")


def _decimal(kind: str, number: int) -> object:
    """The last digit of the number, at the last place of a type that has none before its point."""
    digits, _, behind = kind.partition("(")[2].rstrip(")").partition(",")
    last = number % 10
    return last if int(digits) > int(behind) else float(f"{last}e-{behind}")
