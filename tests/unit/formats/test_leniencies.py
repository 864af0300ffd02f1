"""What each leniency takes beyond the strict rules, for the writer and for verify."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import combinations
from typing import Any

import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.strict_json.decoder import decoder
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.verification.formats.json import reader
from tests.unit.formats.test_plain import agrees, decoded

pytestmark = pytest.mark.unit

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def us(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=timezone.utc) - EPOCH) // timedelta(
        microseconds=1
    )


BAD = "RM603"
AT = us("2026-01-01T00:00:00.123")
DAY = us("2026-01-31")
CASES: list[tuple[str, str, str, Any]] = [
    ("boolean_in_text", "BOOLEAN", '"yes"', True),
    ("boolean_in_text", "BOOLEAN", '"TRUE"', True),
    ("boolean_in_text", "BOOLEAN", '"No"', False),
    ("boolean_in_text", "BOOLEAN", '"0"', False),
    ("boolean_in_text", "BOOLEAN", "1", True),
    ("boolean_in_text", "BOOLEAN", "0", False),
    ("boolean_in_text", "BOOLEAN", "2", BAD),
    ("boolean_in_text", "BOOLEAN", "1.0", BAD),
    ("boolean_in_text", "BOOLEAN", '" true"', BAD),
    ("boolean_in_text", "BOOLEAN", '""', BAD),
    ("boolean_in_text", "BOOLEAN", "[1]", BAD),
    ("count_in_text", "TIMESTAMP", '"1767225600"', us("2026-01-01")),
    ("count_in_text", "TIMESTAMP", '"1767225600.123"', BAD),
    ("count_in_text", "TIMESTAMP", '"01767225600"', BAD),
    ("count_in_text", "TIMESTAMP", '"2026-01-31T00:00:00"', DAY),
    ("fraction_in_count", "TIMESTAMP", "1767225600.123", AT),
    ("fraction_in_count", "TIMESTAMP", "1.767225600123e9", AT),
    ("fraction_in_count", "TIMESTAMP", "1767225600", us("2026-01-01")),
    ("fraction_in_count", "TIMESTAMP", "-0.5", -500_000),
    ("fraction_in_count", "TIMESTAMP", "0.0000001", BAD),
    ("fraction_in_count", "TIMESTAMP", "1e999999999", BAD),
    ("fraction_in_count", "TIMESTAMP", "1e-999999999", BAD),
    ("fraction_in_count", "TIMESTAMP", "0." + "0" * 70 + "1", BAD),
    ("fraction_in_count", "TIMESTAMP", '"1767225600.123"', BAD),
    ("date_as_time", "TIMESTAMP", '"2026-01-31"', DAY),
    ("date_as_time", "TIMESTAMP_NTZ", '"2026-01-31"', DAY),
    ("date_as_time", "TIMESTAMP", '"2026-02-31"', BAD),
    ("date_as_time", "TIMESTAMP", '"2026-1-031"', BAD),
    ("date_as_time", "TIMESTAMP", '"20260131"', BAD),
]
SETTINGS = {"timestamps": {"unit": "s"}}
ALL = sorted({each[0] for each in CASES})


@pytest.mark.parametrize(("name", "kind", "value", "expected"), CASES)
def test_a_leniency_takes_so_much_and_no_more(
    name: str, kind: str, value: str, expected: Any
) -> None:
    columns, record = parse_columns(f"v {kind}"), f'{{"v":{value}}}'.encode()
    found = decoded(decoder(columns, {**SETTINGS, "lenient": [name]}), record)
    assert found == [expected if expected == BAD else (expected,)]
    strict = decoded(decoder(columns, {"timestamps": {}}), record)
    assert strict == [BAD] or expected == DAY


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("names", [*combinations(ALL, 1), *combinations(ALL, 2), tuple(ALL), ()])
def test_the_checker_takes_the_same(names: tuple[str, ...], cut: bool) -> None:
    more = {"fraction": "cut"} if cut else {}
    settings = {"timestamps": {"unit": "s", **more}, "lenient": [*names]}
    for kind in ("BOOLEAN", "TIMESTAMP", "TIMESTAMP_NTZ"):
        columns = parse_columns(f"v {kind}")
        read = reader(schema_of(columns), ["v"], settings)
        values = [f'{{"v":{value}}}'.encode() for _, _, value, _ in CASES]
        assert agrees(decoder(columns, settings), read, values)
