"""Names and texts in statements: whatever they hold, they end where they should."""

from __future__ import annotations

import pytest

from rivermouth.spark.tables import Address, literal, quoted

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("address", "sql", "shown"),
    [
        (Address(name=("main", "bronze", "bids")), "`main`.`bronze`.`bids`", "main.bronze.bids"),
        (Address(name=("my-lake", "a", "b")), "`my-lake`.`a`.`b`", "my-lake.a.b"),
        (Address(name=("a`b", "c", "d")), "`a``b`.`c`.`d`", "a`b.c.d"),
        (Address(path="/lake/it's"), "delta.`/lake/it's`", "/lake/it's"),
        (Address(path="/lake/a`b"), "delta.`/lake/a``b`", "/lake/a`b"),
    ],
)
def test_a_table_is_named_in_quotes(address: Address, sql: str, shown: str) -> None:
    assert (address.sql, str(address)) == (sql, shown)


@pytest.mark.parametrize("name", ["a", "a-b", "a b", "`", "a``b", "'"])
def test_a_quoted_name_comes_back_from_its_quotes(name: str) -> None:
    inner = quoted(name)[1:-1]
    assert (quoted(name)[0], quoted(name)[-1]) == ("`", "`")
    assert inner.replace("``", "`") == name
    assert "`" not in inner.replace("``", "")


@pytest.mark.parametrize(
    ("text", "sql"), [("a", "'a'"), ("it's", "'it\\'s'"), ("a\\b", "'a\\\\b'"), ("", "''")]
)
def test_a_text_ends_where_it_should(text: str, sql: str) -> None:
    assert literal(text) == sql
