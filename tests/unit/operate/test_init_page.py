"""The tables of docs/init.md against the code: samples to what a pipeline has of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from rivermouth.operate.by_values import draft_by_values
from rivermouth.operate.drafts import Draft, flow
from rivermouth.schemas.recognized import recognize
from tests.pages import page
from tests.unit.operate.test_inferred_decodes import refused

pytestmark = pytest.mark.unit

CODE = re.compile(r"``\s?(.+?)``|`([^`]+)`")


def rows(name: str) -> list[list[list[str]]]:
    """The rows of a table of the page: of each cell what stands in back-quotes."""
    table = page("init").partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    cells = (line.strip("|").split("|") for line in lines)
    return [[[a or b for a, b in CODE.findall(cell)] for cell in each] for each in cells]


def drafted(values: Sequence[bytes]) -> Draft:
    found = recognize(values)
    assert not isinstance(found, str), found
    return draft_by_values("orders", found, ())


FIELDS, FORMATS = rows("fields"), rows("formats")


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: f"{row[0][0]}: {', '.join(row[1])}")
def test_a_field_becomes_the_column_of_the_page(row: list[list[str]]) -> None:
    [name], values, [column], beside = row
    records = [f'{{"{name}": {each}}}'.encode() for each in values]
    draft = drafted(records)
    source = {key: its for key, its in draft.source.items() if key != "format"}
    its = [*source.items(), *(pair for each in draft.placed.values() for pair in each.items())]
    assert (draft.schema, [f"{key}: {flow(value)}" for key, value in its]) == (column, beside)
    assert refused(records) == []


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: str(row[1][0]))
def test_a_topic_is_taken_for_what_the_page_says(row: list[list[str]]) -> None:
    texts, said = row
    values = [
        re.sub(rb"\\([0-9a-f]+)", lambda found: bytes([int(found[1], 16)]), each.encode())
        for each in texts
    ]
    draft = drafted(values)
    each = [f"each: {draft.each}"] if draft.each else []
    assert [flow(draft.source), *each] == said
    assert refused(values) == []


def test_the_tables_are_not_empty() -> None:
    assert len(FIELDS) > 30
    assert len(FORMATS) == 7


def test_a_few_bad_records_do_not_matter_and_many_say_so() -> None:
    good, bad = [b'{"id": 1}'] * 90, [b"{oops", b"x", b"\xff\xfe", b""]
    assert drafted([*good, *bad]).schema == "id BIGINT"
    assert recognize([*good[:30], *bad * 3]) == (
        "its records have several formats: 30 of 42 are JSON objects,"
        " 3 of 42 are text that begins as JSON and is none, 3 of 42 are text,"
        " 3 of 42 are bytes that are no text, 3 of 42 are empty values"
    )
    assert recognize([b"{'id': 1}"] * 3) == (
        "its values are text that begins as JSON and is none: the value is not JSON:"
        " expecting property name enclosed in double quotes (character 2)"
    )


@pytest.mark.parametrize(
    ("records", "columns", "placed"),
    [
        (
            ['{"Price": 1}', '{"price": 2.5}'],
            ["Price DOUBLE"],
            {"Price": {"from": ["Price", "price"]}},
        ),
        (
            ['{"Price": 1, "price": 2.5}'],
            ["Price BIGINT", "price_2 DOUBLE"],
            {"price_2": {"from": "price"}},
        ),
        (['{"a`b": 1, "": 2, "c": 3}'], ["c BIGINT"], {}),
        (
            [f'{{"by_day": {{"d{n}": {n}, "e{n}": 0.5}}}}' for n in range(12)],
            ["by_day MAP<STRING, DOUBLE>"],
            {},
        ),
        (
            [f'{{"by_day": {{"d{n}": {n}, "e{n}": "x"}}}}' for n in range(12)],
            ["by_day MAP<STRING, STRING>"],
            {},
        ),
        (
            ['{"${env:HOME}": 1}'],
            ["env_HOME BIGINT"],
            {"env_HOME": {"from": "`$${env:HOME}`"}},
        ),
    ],
)
def test_names_of_records(
    records: list[str], columns: list[str], placed: dict[str, object]
) -> None:
    draft = drafted([each.encode() for each in records])
    assert draft.schema.split(",\n") == columns
    assert draft.placed == placed
    assert refused([each.encode() for each in records]) == []


def test_objects_far_down_are_text() -> None:
    deep = b'{"a": ' * 100 + b"1" + b"}" * 100
    assert refused([deep, b'{"a": {"a": 7}}']) == []
