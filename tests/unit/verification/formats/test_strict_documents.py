"""Whole documents by docs/json.md; see ``test_strict_values`` for single values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.reader import Undecodable, UnknownDecoder

pytestmark = pytest.mark.unit

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string()), ("f", pa.float64())])
ALL = ["number_in_text", "anything_as_text", "repeated_names", "any_case"]
BOTH: tuple[dict[str, Any], ...] = ({}, {"lenient": ALL})
"""What is bad for these reasons is bad whatever the settings."""


def nested(depth: int, *, opens: str = "[", closes: str = "]") -> bytes:
    """A document of so many objects and arrays in each other; no column has them."""
    return f'{{"a":1,"x":{opens * (depth - 1)}{closes * (depth - 1)}}}'.encode()


GOOD = [
    (b'{"a":1}', (1, None, None)),
    (b"{}", (None, None, None)),
    (b' \t\r\n{ \t\r\n"a" \t\r\n: \t\r\n1 \t\r\n, "s" : "t" } \t\r\n', (1, "t", None)),
    (b'{"s":"t","x":{"a":[1]},"a":1}', (1, "t", None)),
    (b'{"\\u0061":1}', (1, None, None)),
    (b'{"A":1,"a ":2}', (None, None, None)),
    (b'{"x":1,"x":2,"a":1}', (1, None, None)),
    (b'{"x":{"a":1,"a":2}}', (None, None, None)),
    ('{"s":"ä€😀\u2028\x7f"}'.encode(), (None, "ä€😀\u2028\x7f", None)),
    (b'{"s":"\\ufeff"}', (None, "\ufeff", None)),
    (b'{"x":1e999999999,"y":' + b"7" * 10_000 + b',"a":3}', (3, None, None)),
    (b'{"x":"\\\\ud800","s":"\\\\\\\\ud800"}', (None, "\\\\ud800", None)),
    (b'{"a":1,"s":"' + b"[{" * 600 + b'"}', (1, "[{" * 600, None)),
    (b'{"a":1,"s":"' + b'\\"[' * 600 + b'"}', (1, '"[' * 600, None)),
    (b'{"a":1,"x":[' + b",".join([b"{}"] * 1_000) + b"]}", (1, None, None)),
    (nested(500), (1, None, None)),
    (nested(499, opens='{"b":', closes="}").replace(b":}", b":0}"), (1, None, None)),
]


@pytest.mark.parametrize(("value", "expected"), GOOD)
def test_a_sound_document_gives_its_columns(value: bytes, expected: tuple[Any, ...]) -> None:
    assert reader(SCHEMA, ["a", "s", "f"], {})(value) == expected


TABLE = Path(__file__).parents[2] / "formats" / "documents.txt"
DOCUMENTS = [
    each
    for each in TABLE.read_text(encoding="utf-8").split("\n")
    if each and not each.startswith("#")
]
"""What the writer takes (+) and refuses (-), too."""
COLUMNS = pa.schema([*SCHEMA, ("o", pa.struct([("a", pa.int32())])), ("l", pa.list_(pa.int32()))])
DEEP = [
    nested(501),
    nested(501, opens='{"b":', closes="}").replace(b":}", b":0}"),
    b'{"a":1,"x":' + b"[" * 100_000,
    b"[" * 100_000,
]


def raw(line: str) -> bytes:
    """``<0A>`` is the byte 0A."""
    parts = re.split(r"<([0-9A-F]{2})>", line)
    return b"".join(bytes.fromhex(p) if i % 2 else p.encode() for i, p in enumerate(parts))


def refuses(columns: list[str], settings: dict[str, Any], value: bytes) -> bool:
    try:
        reader(COLUMNS, columns, settings)(value)
    except Undecodable:
        return True
    return False


@pytest.mark.parametrize("line", DOCUMENTS)
def test_a_document_is_taken_or_refused_as_the_writer_does(line: str) -> None:
    value = raw(line[2:])
    assert refuses(["a", "s", "o", "l"], {}, value) == (line[0] == "-")
    assert refuses([], {"lenient": ALL}, value) == refuses([], {}, value), "of JSON, all is as ever"


@pytest.mark.parametrize("settings", BOTH, ids=["strict", "lenient"])
@pytest.mark.parametrize("value", DEEP, ids=["arrays", "objects", "in a field", "alone"])
def test_what_is_too_deep_is_bad_wherever_it_stands(value: bytes, settings: dict[str, Any]) -> None:
    read = reader(SCHEMA, ["a", "s", "f"], settings)
    with pytest.raises(Undecodable):
        read(value)


NAMES: list[tuple[list[str], bytes, tuple[Any, ...] | None]] = [
    ([], b'{"a":1,"a":2}', None),
    ([], b'{"a":1,"a":1}', None),
    ([], b'{"a":null,"a":1}', None),
    ([], b'{"a":1,"\\u0061":2}', None),
    ([], b'{"a":1,"A":"x"}', (1, None, None)),
    (["repeated_names"], b'{"a":"x","a":2}', (2, None, None)),
    (["repeated_names"], b'{"a":2,"a":"x"}', None),
    (["repeated_names"], b'{"a":2,"a":null}', (None, None, None)),
    (["repeated_names"], b'{"a":1,"A":2}', (1, None, None)),
    (["any_case"], b'{"A":1,"S":"t","F":1.5}', (1, "t", 1.5)),
    (["any_case"], b'{"a":1,"A":2}', None),
    (["any_case"], b'{"x":1,"X":2,"a":3}', (3, None, None)),
    (["any_case"], '{"\u017f":"long s","\u212a":1}'.encode(), (None, None, None)),
    (["any_case", "repeated_names"], b'{"A":"x","a":2}', (2, None, None)),
    (["any_case", "repeated_names"], b'{"a":1,"A":2}', (2, None, None)),
    (["anything_as_text", "repeated_names"], b'{"s":[1],"s":{"a": 1}}', (None, '{"a": 1}', None)),
    (["anything_as_text", "any_case"], b'{"S":{"a": 1},"A":7,"F":7}', (7, '{"a": 1}', 7.0)),
    (["anything_as_text"], b'{"a":7,"f":9007199254740993}', None),
    (["anything_as_text"], b' \n{"s" : {"s":1} , "a":-0 }', (0, '{"s":1}', None)),
    (["anything_as_text"], '{"x":"ä😀","s":["ä😀"]}'.encode(), (None, '["ä😀"]', None)),
]


@pytest.mark.parametrize(("lenient", "value", "expected"), NAMES)
def test_names_are_compared_as_the_settings_say(
    lenient: list[str], value: bytes, expected: tuple[Any, ...] | None
) -> None:
    read = reader(SCHEMA, ["a", "s", "f"], {"lenient": lenient} if lenient else {})
    if expected is None:
        with pytest.raises(Undecodable):
            read(value)
    else:
        assert read(value) == expected


def test_the_wanted_columns_come_in_the_order_that_was_asked_for() -> None:
    assert reader(SCHEMA, ["f", "a"], {})(b'{"a":1,"f":2.5,"s":7}') == (2.5, 1)
    assert reader(SCHEMA, [], {})(b'{"a":"x"}') == ()


def test_a_column_of_a_type_that_json_does_not_hold_is_refused_at_once() -> None:
    with pytest.raises(Undecodable, match="a column of type duration"):
        reader(pa.schema([("d", pa.duration("us"))]), ["d"], {})


@pytest.mark.parametrize(
    ("told", "named"),
    [
        ({"lenient": ["comments"]}, "comments"),
        ({"timestamps": {"unit": "min"}}, "unit min"),
        ({"timestamps": {"fraction": "round"}}, "fraction round"),
        ({"timestamps": {"zone": "UTC"}}, "timestamps.zone"),
        ({"floats": "round"}, "floats"),
        ({"lenient": "any_case"}, "another form"),
        ({"timestamps": "ms"}, "another form"),
    ],
)
def test_settings_that_are_not_known_are_named_and_never_left_out(
    told: dict[str, Any], named: str
) -> None:
    with pytest.raises(UnknownDecoder, match=named):
        reader(SCHEMA, ["a"], told)
