"""Keys and metrics of totals: what a text means, and which columns a table has."""

from __future__ import annotations

import pytest

from rivermouth.config import KeyPart, Measure
from rivermouth.config.columns import Column, parse_columns
from rivermouth.config.totals import key_parts, read_metrics, table_columns

pytestmark = pytest.mark.unit

SCHEMA = parse_columns(
    "id BIGINT, n SMALLINT, price DECIMAL(12,2), wide DECIMAL(38,4), at TIMESTAMP"
)
HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("id", KeyPart("id", "id")),
        ("window(at, '1 hour')", KeyPart("window_start", "at", HOUR)),
        (" window ( at , '2 hours' ) ", KeyPart("window_start", "at", 2 * HOUR)),
        ("window(at, '90 seconds')", KeyPart("window_start", "at", HOUR // 40)),
        ("window(at, '1 week')", KeyPart("window_start", "at", 168 * HOUR)),
    ],
)
def test_a_key_is_a_column_or_a_window(text: str, part: KeyPart) -> None:
    assert key_parts([text]) == (part,)


@pytest.mark.parametrize(
    ("text", "measure", "kind"),
    [
        ("count()", Measure("m", "count"), "BIGINT"),
        ("COUNT(*)", Measure("m", "count"), "BIGINT"),
        ("count( price )", Measure("m", "count", "price"), "BIGINT"),
        ("sum(n)", Measure("m", "sum", "n"), "BIGINT"),
        ("sum(price)", Measure("m", "sum", "price"), "DECIMAL(22,2)"),
        ("sum(wide)", Measure("m", "sum", "wide"), "DECIMAL(37,4)"),
        ("max(at)", Measure("m", "max", "at"), "TIMESTAMP"),
        ("min(n)", Measure("m", "min", "n"), "SMALLINT"),
    ],
)
def test_a_metric_has_a_type(text: str, measure: Measure, kind: str) -> None:
    found = read_metrics({"m": text})
    assert found == (measure,)
    columns = table_columns(SCHEMA, key_parts(["id"]), [measure])
    assert columns == (Column("id", "BIGINT"), Column("m", kind))


def test_a_window_and_a_sketch_have_columns_of_their_own() -> None:
    keys = key_parts(["id", "window(at, '1 day')"])
    measures = [Measure("who", "approx_distinct", "id"), Measure("n", "count")]
    assert [f"{each.name} {each.type}" for each in table_columns(SCHEMA, keys, measures)] == [
        "id BIGINT",
        "window_start TIMESTAMP",
        "who BIGINT",
        "n BIGINT",
        "who_sketch BINARY",
    ]
