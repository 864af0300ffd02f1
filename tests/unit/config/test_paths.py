"""Paths to the fields that give columns, and what is read of a record for them."""

from __future__ import annotations

import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.config.paths import From, reading, steps_of
from rivermouth.config.problems import Refused
from tests.unit.config.conftest import Loads, Problems

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("Order Id", ("Order Id",)),
        ("a.b.c", ("a", "b", "c")),
        ("a[0]", ("a", 0)),
        ("a[0][12].b", ("a", 0, 12, "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b[0]`", ("a", "b[0]")),
        ("ü-1", ("ü-1",)),
    ],
)
def test_a_path_has_names_and_indices(text: str, steps: tuple[str | int, ...]) -> None:
    assert steps_of(text) == steps


@pytest.mark.parametrize(
    "text",
    ["", ".a", "a.", "a..b", "[0]", "a[]", "a[-1]", "a[x]", "a]", "`a", "``", "a`b`", "a.[0]"],
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        steps_of(text)


SCHEMA = parse_columns("id BIGINT, city STRING, zip INT, sku STRING, tags ARRAY<STRING>")


def test_what_is_read_are_the_fields_of_all_paths() -> None:
    fields = (
        From("id", ("Order Id",)),
        From("city", ("address.city", "town")),
        From("zip", ("address.zip",)),
        From("sku", ("items[0].sku",)),
    )
    found = {each.name: each.type for each in reading(SCHEMA, fields)}
    assert found == {
        "Order Id": "BIGINT",
        "address": "STRUCT<`city`: STRING, `zip`: INT>",
        "town": "STRING",
        "items": "ARRAY<STRUCT<`sku`: STRING>>",
        "tags": "ARRAY<STRING>",
    }


def test_two_columns_may_take_one_field() -> None:
    found = reading(parse_columns("a INT, b INT"), (From("b", ("a",)),))
    assert [each.name for each in found] == ["a"]


FAULTY = [
    ("{idd: {from: a}}", "columns.idd is not a column of schema", "did you mean id?"),
    ("{id: a}", "columns.id must be a mapping with from", ""),
    ("{id: {from: 7}}", "columns.id.from must be text", ""),
    ("{id: {from: [a, b..c]}}", "columns.id.from[1] is no path to a field: b..c", ""),
    ("{id: {from: []}}", "columns.id.from is empty", ""),
    ("[id]", "columns must be a mapping of columns", ""),
    ("{id: {from: at}}", "takes at in another way than another column does", ""),
    ("{id: {from: at.x}}", "takes at in another way than another column does", ""),
]


@pytest.mark.parametrize(("columns", "words", "more"), FAULTY)
def test_what_cannot_be_read_is_refused(
    columns: str, words: str, more: str, lake: str, problems: Problems
) -> None:
    [found] = problems(lake.replace("    schema:", f"    columns: {columns}\n    schema:"))
    assert words in found.replace('"', "")
    assert more in found.replace('"', "")


def test_a_format_without_names_has_no_paths(lake: str, problems: Problems) -> None:
    text = lake.replace("format: json", "format: csv")
    [found] = problems(text.replace("    schema:", "    columns: {id: {from: a}}\n    schema:"))
    assert "columns has no meaning for format csv" in found


def test_the_ledger_is_told_the_paths(lake: str, loads: Loads) -> None:
    columns = '{id: {from: "Order Id"}, at: {from: [x.at, y]}}'
    pipeline = loads(lake.replace("    schema:", f"    columns: {columns}\n    schema:")).pipelines[
        "p"
    ]
    assert pipeline.decoder == {"from": {"id": ["Order Id"], "at": ["x.at", "y"]}}
    assert [each.name for each in pipeline.columns] == ["id", "at"]
