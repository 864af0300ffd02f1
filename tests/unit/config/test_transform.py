"""A list of SQL expressions is taken apart at the commas that separate them."""

from __future__ import annotations

import pytest

from rivermouth.config import Pipeline
from rivermouth.config.problems import Refused
from rivermouth.config.transform import expressions, read_function


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ("a",)),
        (" a ,\n b AS c ", ("a", "b AS c")),
        ("coalesce(a, b), c[0], d['x,y']", ("coalesce(a, b)", "c[0]", "d['x,y']")),
        ("concat(a, ')', \"(,\"), `b,c`", ("concat(a, ')', \"(,\")", "`b,c`")),
        (r"'it\'s, so', b", (r"'it\'s, so'", "b")),
        ("'it''s, so', b", ("'it''s, so'", "b")),
    ],
)
def test_expressions_are_separated_by_commas_outside_of_brackets_and_quotes(
    text: str, expected: tuple[str, ...]
) -> None:
    assert expressions(text) == expected


@pytest.mark.parametrize("text", ["", "a,", ",", "f(a", "f(a]", "a)", "'a", '"a', "`a", "a, 'b\\'"])
def test_what_does_not_close_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        expressions(text)


@pytest.mark.parametrize("value", ["shop:large", "a.b_c:d.e"])
def test_the_reference_of_a_function(value: str) -> None:
    assert read_function(value) == value


@pytest.mark.parametrize("value", ["shop", "shop.large", "a b:c", ":c", "a:", "a:b:c", "/a:b", 7])
def test_what_is_no_reference_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        read_function(value)


def test_explode_is_no_part_of_the_identity_as_the_function_is_none() -> None:
    def identity(**target: bool) -> dict[str, object]:
        whole = {"table": "s.t", "columns": "id BIGINT", **target}
        source = {"topics": ("t",), "format": "json"}
        facts = {"name": "p", "source": source, "ddl": "id BIGINT", "transform": "a:b"}
        return {**Pipeline.model_validate({**facts, "target": whole}).identity}

    assert identity(explode=True) == identity()
