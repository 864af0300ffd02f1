"""Columns from fields that stand elsewhere: by cases, and by dice against the checker."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.config.paths import From, reading
from rivermouth.formats.projected import Projected
from rivermouth.formats.strict_json.decoder import decoder
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.projected import projected
from rivermouth.verification.formats.reader import FIELDS
from tests.unit.formats.test_plain import agrees, decoded

pytestmark = pytest.mark.unit

COLUMNS = parse_columns("id BIGINT, city STRING, sku STRING, all ARRAY<INT>, second INT, n INT")
PATHS = {
    "id": ["Order Id"],
    "city": ["address.city", "`a.b`.town"],
    "sku": ["items[0].sku"],
    "second": ["all[1]"],
    "all": ["numbers"],
}
FIELDS_FROM = tuple(From(name, tuple(texts)) for name, texts in PATHS.items())


def how() -> Projected:
    inner = decoder(reading(COLUMNS, FIELDS_FROM), {})
    return Projected.of(inner, COLUMNS, FIELDS_FROM)


CASES: list[tuple[str, Any]] = [
    ('{"Order Id": 1, "n": 2}', (1, None, None, None, None, 2)),
    ('{"address": {"city": "x"}, "a.b": {"town": "y"}}', (None, "x", None, None, None, None)),
    ('{"address": {"city": null}, "a.b": {"town": "y"}}', (None, "y", None, None, None, None)),
    ('{"address": null, "a.b": {"town": "y"}}', (None, "y", None, None, None, None)),
    ('{"items": [{"sku": "s"}, {"sku": "t"}]}', (None, None, "s", None, None, None)),
    ('{"items": []}', (None, None, None, None, None, None)),
    ('{"items": [null]}', (None, None, None, None, None, None)),
    ('{"all": [5, 6], "numbers": [7]}', (None, None, None, [7], 6, None)),
    ('{"all": [5]}', (None, None, None, None, None, None)),
    ('{"id": 1, "city": "x"}', "RM610"),
    ('{"address": "x"}', "RM603"),
    ('{"all": ["x"]}', "RM603"),
]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_the_first_path_with_a_value_counts(value: str, expected: Any) -> None:
    assert decoded(how(), value.encode()) == [expected]


def test_many_records_are_read_as_one_is() -> None:
    values = [value.encode() for value, _ in CASES]
    assert decoded(how(), *values, None) == [*(expected for _, expected in CASES), None]


@pytest.mark.parametrize("seed", range(20))
def test_the_checker_takes_the_same(seed: int) -> None:
    dice = random.Random(seed)
    settings = {FIELDS: [each.name for each in COLUMNS]}
    names = [each.name for each in COLUMNS]

    def make(schema: pa.Schema, columns: Any, settings: dict[str, Any]) -> Any:
        return reader(schema, columns, settings)

    read = projected(make, schema_of(COLUMNS), names, PATHS, settings)
    assert agrees(how(), read, [json.dumps(_record(dice)).encode() for _ in range(200)])


def _record(dice: random.Random) -> dict[str, Any]:
    whole = {
        "Order Id": dice.choice((1, None, "x")),
        "address": dice.choice(({"city": "c"}, {"city": None}, {}, None)),
        "a.b": dice.choice(({"town": "t"}, {"other": 1}, None)),
        "items": dice.choice(([], [{"sku": "s"}], [None, {"sku": "t"}], [{"x": 1}], None)),
        "all": [dice.randrange(9) for _ in range(dice.randrange(4))],
        "numbers": dice.choice(([1, None], [], None)),
        "n": dice.choice((1, None)),
        "id": 7,
    }
    return {name: whole[name] for name in dice.sample([*whole], dice.randrange(len(whole)))}
