"""Arrays whose elements become rows: by cases, and by damaged texts against the checker."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.config.each import ROWS, WHOLE, records
from rivermouth.config.paths import From, reading
from rivermouth.formats.arrow import NO_FIELD, InArrow
from rivermouth.formats.projected import AsField, Elements, Projected
from rivermouth.formats.strict_json.decoder import BAD, decoder
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.projected import as_field, projected, with_elements
from rivermouth.verification.formats.reader import FIELDS, Reader, Undecodable

pytestmark = pytest.mark.unit

COLUMNS = parse_columns("order_id BIGINT, sku STRING, city STRING")
FROM = (From("order_id", ("$.id",)), From("city", ("at.city", "at.list[0]")))
INSIDE = parse_columns("sku STRING, city STRING, tags ARRAY<STRING>")


def both(each: str) -> tuple[InArrow, Reader]:
    """What writer and checker read such records by."""
    whole = each == WHOLE
    given = (INSIDE, ()) if whole else (COLUMNS, FROM)
    columns, fields, _ = records(each, *given)
    inner: InArrow = decoder(reading(columns, fields), {})
    names, paths = [e.name for e in columns], {e.column: e.texts for e in fields}

    def make(schema: pa.Schema, wanted: Any, its: dict[str, Any]) -> Reader:
        read = reader(schema, wanted, its)
        return as_field(read) if whole else read

    told = projected(make, schema_of(columns), names, paths, {FIELDS: names})
    writer = Projected.of(AsField(inner) if whole else inner, columns, fields)
    return Elements(writer), with_elements(told)


CASES: list[tuple[str, str, Any]] = [
    ("$", '[{"sku": "a"}, {"sku": "b", "x": 1}]', ["a", "b"]),
    ("$", ' [ {"sku": "]"} ] ', ["]"]),
    ("$", "[]", []),
    ("$", '[{"sku": "a", "tags": ["x"], "city": "y"}]', ["a"]),
    ("$", "null", BAD),
    ("$", '{"sku": "a"}', BAD),
    ("$", '[{"sku": "a"}', BAD),
    ("$", '[{"sku": "a"}]]', BAD),
    ("$", '[{"sku": "a"}], "x": 1', BAD),
    ("$", '[{"sku": "a"}], "$": [1]', BAD),
    ("$", '[{"sku": "a"}], [{"sku": "b"}]', BAD),
    ("$", '[{"sku": 1}]', BAD),
    ("$", "[1]", BAD),
    ("$", "[null]", NO_FIELD),
    ("$", '[{"sku": "a"}, {"other": 1}]', NO_FIELD),
    ("$", '[{"sku": null}]', NO_FIELD),
    ("items", '{"id": 1, "items": [{"sku": "a"}]}', ["a"]),
    ("items", '{"id": 1}', None),
    ("items", '{"items": null}', None),
    ("items", '{"id": 1, "items": []}', []),
    ("items", '{"id": 1, "items": [{}]}', NO_FIELD),
    ("items", '{"x": 1}', NO_FIELD),
    ("a.items", '{"a": {"items": [{"sku": "a", "at": {"list": ["z"]}}]}}', ["a"]),
]


@pytest.mark.parametrize(("each", "text", "expected"), CASES)
def test_an_array_is_read_or_its_record_is_bad(each: str, text: str, expected: Any) -> None:
    writer, checker = both(each)
    found = writer.decode(pa.array([text.encode()], pa.binary()))
    [code], [row] = found.codes.to_pylist(), found.rows.to_pylist()
    if isinstance(expected, str):
        assert (code, row) == (expected, None)
        with pytest.raises(Undecodable):
            checker(text.encode())
        return
    lists = (row[ROWS], checker(text.encode())[-1])
    skus = [e if e is None else [element["sku"] for element in e] for e in lists]
    assert (code, *skus) == (None, expected, expected)


def test_the_element_is_named_by_its_number_in_its_own_record() -> None:
    writer, _ = both("$")
    texts = ['[{"sku": "a"}]', "[]", "{}", '[{"sku": "a"}, {"y": 1}]']
    found = writer.decode(pa.array([e.encode() for e in texts], pa.binary()))
    assert found.reasons.to_pylist()[3] == "the element 1 has no field of the columns"
    assert found.codes.to_pylist() == [None, None, BAD, NO_FIELD]


@pytest.mark.parametrize("seed", range(20))
def test_the_checker_judges_damaged_arrays_alike(seed: int) -> None:
    dice, (writer, checker) = random.Random(seed), both("$")
    texts = [_damaged(dice) for _ in range(300)]
    found = writer.decode(pa.array([e.encode() for e in texts], pa.binary()))
    for text, code in zip(texts, found.codes.to_pylist(), strict=True):
        try:
            checker(text.encode())
            bad = False
        except Undecodable:
            bad = True
        assert bad == (code is not None), text


def _damaged(dice: random.Random) -> str:
    """An array, or pieces of some in any order."""
    element = {"sku": "a", "tags": ["x", '],"y":'], "other": [{"z": [1]}]}
    few = [{k: v for k, v in element.items() if dice.random() < 0.7} for _ in range(2)]
    text = json.dumps(few, separators=dice.choice([(",", ":"), (", ", ": ")]))
    if dice.random() < 0.3:
        return text
    pieces = ["]", "[", "{", "}", ",", '"x":', '"$":', "[]", "1", " ", text]
    return "".join(dice.choice(["", text]) + dice.choice(pieces) for _ in range(3))
