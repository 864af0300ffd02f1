"""A bad record alone goes apart: its neighbours are read at once, and as without it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.strict_json.chunk import Texts
from rivermouth.formats.strict_json.columns import ReadAs
from rivermouth.formats.strict_json.decoder import StrictJson, decode_at_once
from rivermouth.formats.strict_json.guards import as_text, common_form, fitting, framed
from rivermouth.formats.strict_json.types import JsonSettings
from tests.unit.formats.two_ways import differences

pytestmark = pytest.mark.unit

STRICT = StrictJson.of(
    parse_columns(
        "id BIGINT, n INT, price DECIMAL(12,2), at TIMESTAMP, name STRING, f DOUBLE, "
        "o STRUCT<a: INT, s: STRING>, l ARRAY<STRUCT<k: STRING, v: TINYINT>>"
    ),
    JsonSettings(),
)
ROW = pa.struct(list(STRICT.schema))
COUNT = 3_000
PLACES = (3, 480, 1_700, 1_701, 2_999)


def good(number: int, dice: random.Random) -> bytes:
    value = {
        "id": number * 10**9,
        "n": None if number % 7 == 0 else dice.randrange(-(10**9), 10**9),
        "price": dice.randrange(10**6) / 100,
        "at": f"2026-03-01T10:00:{number % 60:02}.5Z",
        "name": dice.choice(("Größe } {", 'a "b" \\ c', "x,y:[]", "")),
        "f": dice.uniform(-1, 1),
        "o": {"a": number % 100, "s": "é"},
        "l": [{"k": "x", "v": dice.randrange(-128, 128)} for _ in range(number % 3)],
        "other": {"a": [1, {"b": None}], "c": "}"},
    }
    if number % 10 == 1:
        del value["price"]
    return json.dumps(value, ensure_ascii=number % 2 == 0, separators=(",", ":")).encode()


def instead(value: bytes, name: str, new: str) -> bytes:
    """The record with another value of a plain field."""
    start = value.index(f'"{name}":'.encode()) + len(name) + 3
    return value[:start] + new.encode() + value[value.index(b',"', start) :]


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "not JSON": lambda value: b"no JSON",
    "truncated": lambda value: value[: len(value) // 2],
    "truncated at a brace": lambda value: value[: value.rindex(b"}")],
    "truncated, with a brace": lambda value: value[: value.index(b'"at"') + 9] + b"}",
    "single quotes": lambda value: value.replace(b'"', b"'"),
    "a comma at the end": lambda value: value[:-1] + b",}",
    "NaN": lambda value: instead(value, "f", "NaN"),
    "a digit before": lambda value: instead(value, "f", "01"),
    "a control character": lambda value: instead(value, "name", '"a\x01b"'),
    "half of a pair": lambda value: instead(value, "name", '"\\ud800"'),
    "text for a number": lambda value: instead(value, "id", '"x"'),
    "an object for text": lambda value: instead(value, "name", "{}"),
    "a number for text": lambda value: instead(value, "name", "7"),
    "text in a nested number": lambda value: value.replace(b'"o":{"a":', b'"o":{"a":"x","z":'),
    "a fraction": lambda value: instead(value, "id", "1.5"),
    "more than BIGINT": lambda value: instead(value, "id", "1" + "0" * 25),
    "more than 38 digits": lambda value: instead(value, "id", "1" + "0" * 60),
    "more than INT": lambda value: instead(value, "n", "2147483648"),
    "too many digits of a DECIMAL": lambda value: instead(value, "id", "1.001"),
    "infinite": lambda value: instead(value, "f", "1e400"),
    "a name twice": lambda value: value[:-1] + b',"id":1}',
    "a nested name twice": lambda value: value.replace(b'"o":{"a":', b'"o":{"a":1,"a":'),
    "text before": lambda value: b"x" + value,
    "text after": lambda value: value + b" x",
    "a brace after": lambda value: value + b"}",
    "two objects": lambda value: value + value,
    "an object and a line feed": lambda value: value + b"\n{}",
    "not UTF-8": lambda value: instead(value, "name", "?").replace(b"?", b'"\xff"'),
    "half of a letter": lambda value: value + b"\xc3",
    "no time": lambda value: instead(value, "at", '"yesterday"'),
    "a day that is none": lambda value: instead(value, "at", '"2026-02-30T10:00:00Z"'),
}


@pytest.fixture(scope="module")
def clean() -> tuple[list[bytes], pa.StructArray]:
    dice = random.Random(1)
    values = [good(number, dice) for number in range(COUNT)]
    decoded = STRICT.decode(pa.array(values, pa.binary()))
    assert decoded.reasons.null_count == COUNT
    return values, decoded.rows


def at_once(values: list[bytes]) -> list[int]:
    """The records that were not read one by one."""
    texts = as_text(pa.array(values, pa.binary()))
    pieces = decode_at_once(Texts(texts, np.arange(len(values))), ROW, JsonSettings())
    return sorted(int(record) for each in pieces for record in each.found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_record_alone_goes_apart(
    kind: str, clean: tuple[list[bytes], pa.StructArray]
) -> None:
    values, expected = list(clean[0]), clean[1]
    for place in PLACES:
        values[place] = KINDS[kind](values[place])
    others = np.delete(np.arange(COUNT), PLACES)
    decoded = STRICT.decode(pa.array(values, pa.binary()))
    assert decoded.rows.take(pa.array(others)).equals(expected.take(pa.array(others)))
    assert decoded.rows.take(pa.array(PLACES)).null_count == len(PLACES)
    assert [n for n, each in enumerate(decoded.reasons.to_pylist()) if each] == list(PLACES)
    assert at_once(values) == others.tolist()


def test_all_records_may_be_bad(clean: tuple[list[bytes], pa.StructArray]) -> None:
    kinds = list(KINDS.values())
    values = [kinds[n % len(kinds)](each) for n, each in enumerate(clean[0])]
    decoded = STRICT.decode(pa.array(values, pa.binary()))
    assert decoded.rows.null_count == COUNT
    assert decoded.reasons.null_count == 0


def test_many_records_of_another_order_are_read_at_once() -> None:
    values = [b'{"id":1,"n":2}', b'{"n":2,"id":1}'] * COUNT
    values[7] = b'{"id":"x"}'
    assert 7 not in at_once(values)
    assert len(at_once(values)) > 2 * COUNT - 10


@pytest.mark.parametrize(
    "numbers", [("1e2", "1.5"), ("1e2", "1e38", "-1e38", "99e36", "-99e36", 38 * "9", "1.5")]
)
def test_the_widest_whole_numbers_stand_beside_others(numbers: tuple[str, ...]) -> None:
    """10 to the power of 38 has more digits than the type that the parser reads them as."""
    values: list[bytes | None] = [f'{{"v":{each}}}'.encode() for each in numbers * 1_000]
    widest = StrictJson.of(parse_columns("v DECIMAL(38,0)"), JsonSettings())
    assert differences(widest, values) == []


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('{"id":1,"u":{"a":[1]},"s":"x"}', True),
        ('{"id":1,"s":"x"}', True),
        ('{ "id" : -9 ,\n"s":null}', True),
        ("{}", True),
        ('{"id":9223372036854775807}', True),
        ('{"id":-9223372036854775799}', True),
        ('{"id":9223372036854775808}', False),
        ('{"id":-9223372036854775808}', True),
        ('{"id":-9223372036854775809}', False),
        ('{"s":"x","id":1}', False),
        ('{"id":1,"id":1}', False),
        ('{"id":01}', False),
        ('{"id":1.0}', False),
        ('{"id":1,"s":"\\ud800"}', False),
        ('{"id":1,"s":"\\ud83d\\ude00é"}', True),
        ('{"id":1,}', False),
        ('{"id":1}{"id":1}', False),
        ('{"id":1,"u":[[1]]}', True),
        ('{"id":1,"u":[[[1]]]}', False),
        ('{"id":1,"u":NaN}', False),
        ('{"id":1,"unseen":1}', False),
    ],
)
def test_a_text_has_the_usual_form(text: str, fits: bool) -> None:
    row = ReadAs(numbers=False, wide=False).kind(pa.struct({"id": pa.int64(), "s": pa.string()}))
    form = common_form(pa.array(['{"id":1,"u":{"a":[1]},"s":"x"}', "{", '{"u":1}']), row)
    assert form
    texts, inside = framed(pa.array([text]))
    assert (inside & fitting(texts, form)).tolist() == [fits]
