"""Any text is an object by the grammar of RFC 8259, or bad; what is taken as text is its text."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.reader import Undecodable

pytestmark = pytest.mark.unit

TEXT = (
    r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"'
)
NAME = re.compile(TEXT)
SINGLE = re.compile(rf"{TEXT}|true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def behind(text: str, at: int) -> int:
    """Where the JSON value that begins there ends, by the grammar of RFC 8259; else ValueError."""
    closes = {"{": "}", "[": "]"}.get(text[at : at + 1])
    if closes is None:
        return matched(SINGLE, text, at)
    at = after_space(text, at + 1)
    if text[at : at + 1] == closes:
        return at + 1
    while True:
        if closes == "}":
            at = after_space(text, matched(NAME, text, at))
            at = after_space(text, text.index(":", at, at + 1) + 1)
        at = after_space(text, behind(text, at))
        if text[at : at + 1] == closes:
            return at + 1
        at = after_space(text, text.index(",", at, at + 1) + 1)


def matched(form: re.Pattern[str], text: str, at: int) -> int:
    found = form.match(text, at)
    if found is None:
        raise ValueError
    return found.end()


SPACES = re.compile("[ \t\r\n]*")


def after_space(text: str, at: int) -> int:
    return matched(SPACES, text, at)


def is_object(text: str) -> bool:
    try:
        begins = after_space(text, 0)
        return text.startswith("{", begins) and after_space(text, behind(text, begins)) == len(text)
    except ValueError:
        return False


SPACE = st.text(" \t\r\n", max_size=2)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)
TREES = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        LEAVES, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=2), each)
    ),
    max_size=4,
)
TOKENS = [r"\u", r"\ud83d", r"\ude00", r"\u00e4", "NaN", "Infinity", "true", "nul", "//", "/**/"]
PIECES = st.sampled_from(
    [*'{}[]",:\\/0123456789eE+-. \t\n\r\x0b\x00\xa0\ufeff\u0661\u00e4\U0001f600', "", *TOKENS]
)
CHANGES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2), PIECES), max_size=3)


@settings(max_examples=150)
@given(tree=TREES, changes=CHANGES)
def test_a_text_is_read_just_if_it_is_an_object_by_the_grammar(
    tree: Any, changes: list[tuple[int, int, str]]
) -> None:
    check_by_the_grammar(tree, changes)


@pytest.mark.thorough
@settings(max_examples=2_000)
@given(tree=TREES, changes=CHANGES)
def test_many_texts_are_read_just_if_they_are_objects_by_the_grammar(
    tree: Any, changes: list[tuple[int, int, str]]
) -> None:
    check_by_the_grammar(tree, changes)


def check_by_the_grammar(tree: Any, changes: list[tuple[int, int, str]]) -> None:
    document = json.dumps(tree)
    for at, takes, piece in changes:
        place = at % (len(document) + 1)
        document = document[:place] + piece + document[place + takes :]
    for lenient in ([], ["anything_as_text", "any_case"]):
        read = reader(pa.schema([]), [], {"lenient": lenient})
        try:
            read(document.encode())
        except Undecodable:
            assert not is_object(document), lenient
        else:
            assert is_object(document), lenient


STRINGS = pa.schema([("s", pa.string()), ("l", pa.list_(pa.string()))])


@given(tree=TREES, space=SPACE, escaped=st.booleans())
def test_anything_as_text_is_the_text_of_the_record_byte_for_byte(
    tree: Any, space: str, escaped: bool
) -> None:
    inner = json.dumps(tree, ensure_ascii=escaped, separators=(f",{space}", f"{space}:{space}"))
    value = f'{{"l"{space}:[{inner},{space}7.0 ],"x":[{{}}],{space}"s":{space}{inner}}}'
    read = reader(STRINGS, ["s", "l"], {"lenient": ["anything_as_text"]})
    assert read(value.encode()) == (inner, [inner, "7.0"])
