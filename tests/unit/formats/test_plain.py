"""CSV, text and bytes: by cases, and by dice against the checker's own reading."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.arrow import InArrow
from rivermouth.formats.csv import decoder as csv
from rivermouth.formats.framing import Unframed
from rivermouth.formats.plain import raw, string
from rivermouth.formats.strict_json.decoder import decoder as json
from rivermouth.formats.strict_json.types import schema_of
from rivermouth.verification.formats import plain as checker
from rivermouth.verification.formats.framed import without_header
from rivermouth.verification.formats.json import reader as read_json
from rivermouth.verification.formats.reader import FIELDS, Reader, Undecodable
from tests.unit.formats.avro.test_decoder import rows_of

pytestmark = pytest.mark.unit

COLUMNS = "n INT, t STRING, d DECIMAL(6,2), b BOOLEAN, at TIMESTAMP"
NAMES = [each.name for each in parse_columns(COLUMNS)]


def decoded(how: InArrow, *values: bytes | None) -> list[Any]:
    """The rows, and for a bad record its code."""
    found = how.decode(pa.array(values, pa.binary()))
    found.rows.validate(full=True)
    rows, codes = rows_of(found.rows), found.codes.to_pylist()
    reasons = found.reasons.to_pylist()
    assert [each is None for each in codes] == [each is None for each in reasons]
    return [code or row for row, code in zip(rows, codes, strict=True)]


def lines(text: str, **settings: str) -> InArrow:
    return csv(parse_columns(text), {"csv": settings} if settings else {})


CASES: list[tuple[bytes, Any]] = [
    (b"1,a", (1, "a")),
    (b"1,", (1, None)),
    (b'1,""', (1, "")),
    (b",a", (None, "a")),
    (b'"1","a,b"', (1, "a,b")),
    (b'1,"a ""b"""', (1, 'a "b"')),
    (b'1,"a\r\nb"\r\n', (1, "a\r\nb")),
    (b"1,a\n", (1, "a")),
    ("1,ü".encode(), (1, "ü")),
    (b"1, a ", (1, " a ")),
    (b"1", "RM603"),
    (b"1,a,b", "RM603"),
    (b'1,"a', "RM603"),
    (b'1,"a"b', "RM603"),
    (b'1,a"b', "RM603"),
    (b"1,a\nb", "RM603"),
    (b"x,a", "RM603"),
    (b"99999999999,a", "RM603"),
    (b"1,\xff", "RM603"),
]


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_a_line_is_read_by_the_rules_of_csv(line: bytes, expected: Any) -> None:
    how = lines("n INT, t STRING")
    assert decoded(how, line) == [expected]
    assert decoded(how, b"7,x", line, None, b"8,y") == [(7, "x"), expected, None, (8, "y")]


def test_another_delimiter_and_a_word_for_null() -> None:
    how = lines("n INT, t STRING", delimiter=";", null_value="-")
    assert decoded(how, b"1;-", b"-;a,b", b'1;"-"', b"1;") == [
        (1, None),
        (None, "a,b"),
        (1, "-"),
        (1, ""),
    ]


FIELDS_OF_DICE = [
    *("1", "-7", "1.50", "true", "false", "2026-01-02T03:04:05Z", "", "x", "ü", " 1", "1e2"),
    *('"1"', '"a,b"', '"a""b"', '""', '"', 'a"b', "\n", '"a\nb"', "null", "0x1", "12345.67"),
]


@pytest.mark.parametrize("seed", range(20))
def test_the_checker_reads_lines_in_the_same_way(seed: int) -> None:
    dice = random.Random(seed)
    typical = ["1", "a", "2.5", "true", "2026-01-02T03:04:05Z"]
    values = [_line(dice, typical) for _ in range(300)]
    settings: dict[str, Any] = {"lenient": ["number_in_text"]} if seed % 2 else {}
    how = csv(parse_columns(COLUMNS), settings)
    schema = schema_of(parse_columns(COLUMNS))
    read = checker.csv(schema, NAMES, {**settings, FIELDS: NAMES})
    assert agrees(how, read, values)


def _line(dice: random.Random, typical: Sequence[str]) -> bytes:
    fields = [e if dice.random() < 0.8 else dice.choice(FIELDS_OF_DICE) for e in typical]
    if dice.random() < 0.05:
        fields = fields[:-1] if dice.random() < 0.5 else [*fields, "1"]
    line = ",".join(fields) + dice.choice(("", "", "\n", "\r\n", "\n\n"))
    return line.encode() if dice.random() < 0.97 else line.encode() + b"\xff"


def agrees(how: InArrow, read: Reader, values: Sequence[bytes]) -> bool:
    for value, ours in zip(values, decoded(how, *values), strict=True):
        try:
            theirs: object = read(value)
        except Undecodable:
            theirs = "bad"
        assert repr(theirs) == repr("bad" if isinstance(ours, str) else ours), value
    return True


TEXTS: list[tuple[str, bytes, Any]] = [
    ("t STRING", b"7", ("7",)),
    ("t STRING", b"\xff", "RM603"),
    ("n BIGINT", b"7", (7,)),
    ("n BIGINT", b"7.0", (7,)),
    ("n BIGINT", b" 7", "RM603"),
    ("b BOOLEAN", b"true", (True,)),
    ("b BOOLEAN", b"True", "RM603"),
]


@pytest.mark.parametrize(("columns", "value", "expected"), TEXTS)
def test_text_of_one_column(columns: str, value: bytes, expected: Any) -> None:
    how, settings = string(parse_columns(columns), {}), dict[str, Any]()
    assert decoded(how, value, None) == [expected, None]
    schema = schema_of(parse_columns(columns))
    assert agrees(how, checker.string(schema, schema.names, settings), [value])


def test_bytes_are_taken_as_they_are() -> None:
    columns = parse_columns("body BINARY")
    assert decoded(raw(columns, {}), b"\xff\0", None) == [(b"\xff\0",), None]
    read = checker.raw(schema_of(columns), ["body"], {})
    assert read(b"\xff\0") == (b"\xff\0",)


FRAMED: list[tuple[bytes | None, Any]] = [
    (b'\0\0\0\0\7{"id":1}', (1,)),
    (b'{"id":1}', "RM611"),
    (b"\0\0\0", "RM611"),
    (b'\1\0\0\0\7{"id":1}', "RM611"),
    (b"\0\0\0\0\7", "RM602"),
    (b"\0\0\0\0\7{", "RM603"),
    (None, None),
]


def test_a_value_that_looks_framed_is_told_so() -> None:
    found = json(parse_columns("id BIGINT"), {}).decode(pa.array([FRAMED[0][0]], pa.binary()))
    assert "as framed values do: see source.framing" in found.reasons[0].as_py()


def test_a_number_of_a_schema_ahead_is_taken_off() -> None:
    columns = parse_columns("id BIGINT")
    how = Unframed(json(columns, {}))
    values = [value for value, _ in FRAMED]
    assert decoded(how, *values) == [expected for _, expected in FRAMED]
    assert [decoded(how, each)[0] for each in values] == [expected for _, expected in FRAMED]
    settings: Mapping[str, Any] = {FIELDS: ["id"]}
    read = without_header(read_json(schema_of(columns), ["id"], settings))
    assert agrees(how, read, [each for each in values if each])
