"""The strict decoder of JSON: documents and values that it takes and refuses, by both ways."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings, Leniency, Unit
from tests.unit.formats.two_ways import exactly, parsers_differ, rows

pytestmark = pytest.mark.unit

HERE = Path(__file__).parent
COLUMNS = "a BIGINT, s STRING, o STRUCT<a: INT>, l ARRAY<INT>"
GOOD = b'{"a":7}'


def lines(name: str) -> list[str]:
    text = (HERE / name).read_text("utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def decoder(columns: str, settings: JsonSettings | None = None) -> StrictJson:
    """Records without a field of the columns are rows of nulls."""
    return StrictJson.of(parse_columns(columns), replace(settings or JsonSettings(), empty=True))


def both(strict: StrictJson, value: bytes) -> tuple[dict[str, object] | None, str | None]:
    """The row and the reason, after both ways gave the same, also among good neighbours."""
    values: list[bytes | None] = [GOOD, value, None, GOOD, b""]
    got, expected = strict.decode(pa.array(values, pa.binary())), exactly(strict, values)
    assert rows(got) == rows(expected)
    for alone in (pa.binary(), pa.large_binary()):
        assert rows(strict.decode(pa.array([value], alone))) == rows(expected)[1:2]
    assert got.reasons[0].as_py() == got.reasons[2].as_py() == got.reasons[4].as_py() is None
    assert not got.rows[2].is_valid
    assert not got.rows[4].is_valid
    reason = got.reasons[1].as_py()
    assert got.rows[1].is_valid == (reason is None)
    assert reason is None or 0 < len(reason) <= 200
    row: dict[str, object] | None = got.rows[1].as_py()
    return row, reason


def raw(line: str) -> bytes:
    """``<0A>`` is the byte 0A."""
    parts = re.split(r"<([0-9A-F]{2})>", line)
    return b"".join(bytes.fromhex(p) if i % 2 else p.encode() for i, p in enumerate(parts))


@pytest.mark.parametrize("line", lines("documents.txt"))
def test_a_document_is_taken_or_refused(line: str) -> None:
    value = raw(line[2:])
    _, reason = both(decoder(COLUMNS), value)
    assert (reason is None) == (line[0] == "+"), reason
    assert not parsers_differ(value)
    # The parser that keeps how things are spelt takes no other documents.
    spelt = decoder(COLUMNS, JsonSettings(lenient=frozenset({"anything_as_text"})))
    _, other = both(spelt, value)
    assert other is None or line[0] == "-"


@pytest.mark.parametrize("line", lines("values.txt"))
def test_a_value_becomes_that_of_its_column_or_is_refused(line: str) -> None:
    kind, value, expected = line.split(" | ")
    row, reason = both(decoder(f"v {kind}"), f'{{"v":{value}}}'.encode())
    if expected == "bad":
        assert reason
        assert reason.startswith("v")
    else:
        assert row, reason
        assert str(row["v"]) == expected


@pytest.mark.parametrize(
    ("kind", "value", "settings", "expected"),
    [
        ("INT", '"7"', "number_in_text", "7"),
        ("DOUBLE", '"-1e2"', "number_in_text", "-100.0"),
        ("FLOAT", '"16777217"', "number_in_text", "bad"),
        ("INT", '" 7"', "number_in_text", "bad"),
        ("INT", '"+7"', "number_in_text", "bad"),
        ("INT", '"1_0"', "number_in_text", "bad"),
        ("TIMESTAMP", '"7"', "number_in_text", "bad"),
        ("STRING", '{"x" :[1.50,\n"é" ]}', "anything_as_text", '{"x" :[1.50,\n"é" ]}'),
        ("STRING", "1.50", "anything_as_text", "1.50"),
        ("STRING", "true", "anything_as_text", "true"),
        ("STRING", '"x"', "anything_as_text", "x"),
        ("STRING", "[ ]", "anything_as_text", "[ ]"),
        ("STRING", "null", "anything_as_text", "None"),
        ("STRUCT<a: INT>", '{"a":"x","a":1}', "repeated_names", "{'a': 1}"),
        ("STRUCT<a: INT>", '{"a":1,"a":"x"}', "repeated_names", "bad"),
        ("STRUCT<a: INT>", '{"a":1,"a":null}', "repeated_names", "{'a': None}"),
        ("MAP<STRING, INT>", '{"a":1,"b":2,"a":3}', "repeated_names", "[('b', 2), ('a', 3)]"),
        ("STRUCT<a: INT>", '{"A":1}', "any_case", "{'a': 1}"),
        ("STRUCT<Ab: INT>", '{"aB":1}', "any_case", "{'Ab': 1}"),
        ("STRUCT<k: INT>", '{"\\u212a":1}', "any_case", "{'k': None}"),
        ("STRUCT<`ü`: INT>", '{"Ü":1}', "any_case", "{'ü': None}"),
        ("STRUCT<a: INT>", '{"A":1,"a":1}', "any_case", "bad"),
        ("MAP<STRING, INT>", '{"A":1,"a":1}', "any_case", "bad"),
        ("MAP<STRING, INT>", '{"A":1}', "any_case", "[('A', 1)]"),
    ],
)
def test_what_is_allowed_beside_is_taken(
    kind: str, value: str, settings: Leniency, expected: str
) -> None:
    strict = decoder(f"v {kind}", JsonSettings(lenient=frozenset({settings})))
    row, _ = both(strict, f'{{"v":{value}}}'.encode())
    assert ("bad" if row is None else str(row["v"])) == expected


@pytest.mark.parametrize(
    ("value", "unit", "cut", "expected"),
    [
        ("1767225600", "s", False, "2026-01-01 00:00:00+00:00"),
        ("1767225600001", "ms", False, "2026-01-01 00:00:00.001000+00:00"),
        ("1767225600000001", "us", False, "2026-01-01 00:00:00.000001+00:00"),
        ("1767225600000001000", "ns", False, "2026-01-01 00:00:00.000001+00:00"),
        ("1767225600000001001", "ns", False, "bad"),
        ("1767225600000001001", "ns", True, "2026-01-01 00:00:00.000001+00:00"),
        ("-1", "ns", False, "bad"),
        ("-1", "ns", True, "1969-12-31 23:59:59.999999+00:00"),
        ("1e3", "ms", False, "1970-01-01 00:00:01+00:00"),
        ("1.0", "s", False, "1970-01-01 00:00:01+00:00"),
        ("1.5", "s", False, "bad"),
        ("1.5", "s", True, "bad"),
        ("253402300799", "s", False, "9999-12-31 23:59:59+00:00"),
        ("253402300800", "s", False, "bad"),
        ("-62135596800", "s", False, "0001-01-01 00:00:00+00:00"),
        ("-62135596801", "s", False, "bad"),
        ("9223372036854775807", "s", False, "bad"),
        ("99999999999999999999999", "ns", False, "bad"),
        ('"2026-01-31T10:00:00Z"', "s", False, "2026-01-31 10:00:00+00:00"),
        ('"7"', "s", False, "bad"),
        ('"2026-01-31T10:00:00.1234567Z"', "s", True, "2026-01-31 10:00:00.123456+00:00"),
        ('"1969-12-31T23:59:59.9999999Z"', None, True, "1969-12-31 23:59:59.999999+00:00"),
        ("7", None, True, "bad"),
    ],
)
def test_a_time_may_be_a_number_or_be_cut(
    value: str, unit: Unit | None, cut: bool, expected: str
) -> None:
    row, _ = both(decoder("v TIMESTAMP", JsonSettings(unit, cut)), f'{{"v":{value}}}'.encode())
    assert ("bad" if row is None else str(row["v"])) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"a":"x"}', 'a: BIGINT takes a number, not the text "x"'),
        ('{"l":[1,true]}', "l[1]: INT takes a number, not true"),
        ('{"o":{"a":1.5}}', "o.a: INT takes whole numbers of its range, not the number 1.5"),
        ('{"a":1,"a":1}', "a: the name comes twice"),
        ('{"a":1', "the value is not JSON: expecting ',' delimiter (character 7)"),
        ("[]", "the value is not one JSON object"),
    ],
)
def test_the_reason_names_the_field(value: str, reason: str) -> None:
    assert both(decoder(COLUMNS), value.encode())[1] == reason


def test_the_depth_has_a_limit() -> None:
    for depth, good in ((499, True), (500, False), (20_000, False)):
        for opening, closing in ((b"[", b"]"), (b'{"x":', b"}")):
            inner = b"1" if opening != b"[" else b""
            value = b'{"x":' + opening * depth + inner + closing * depth + b"}"
            assert (both(decoder(COLUMNS), value)[1] is None) == good
    assert both(decoder(COLUMNS), b'{"x":"' + b"[" * 5_000 + b'"}')[1] is None
    assert both(decoder(COLUMNS), b'{"x":[' + b"[]," * 5_000 + b"[]]}")[1] is None


def test_a_decoder_can_be_pickled_and_many_values_come_in_chunks() -> None:
    strict = pickle.loads(pickle.dumps(decoder("a INT")))
    values = pa.chunked_array([[b'{"a":1}'] * 30_000, [], [b"{", None]], pa.binary())
    decoded = strict.decode(values)
    assert len(decoded.rows) == len(decoded.reasons) == 30_002
    assert decoded.rows.null_count == 2
    assert len(strict.decode(pa.chunked_array([], pa.binary())).rows) == 0


def test_halves_of_a_letter_in_two_records_are_not_a_letter() -> None:
    strict = decoder("s STRING")
    decoded = strict.decode(pa.array([b'{"s":"\xc3', b'\xa9"}'], pa.binary()))
    assert decoded.reasons.null_count == 0


@pytest.mark.parametrize(
    "values",
    [
        [b'{"x":', b'{"a":1}}', b"{}{}"],
        [b'{"x":[', b"{}]}", b"{} {}"],
        [b"{}{}", b"{\0}"],
        [b"{}{}{}", b"{}", b"{}\0}", b"{}"],
        [b"{}}", b"{}", b"{{}"],
        [b'{"s":"', b'"}', b"{}{}"],
        [b"{}null{}", b"{}"],
    ],
    ids=str,
)
def test_broken_records_do_not_complete_each_other(values: list[bytes | None]) -> None:
    strict = decoder(COLUMNS)
    decoded = strict.decode(pa.array(values, pa.binary()))
    assert rows(decoded) == rows(exactly(strict, values))
    assert decoded.rows.null_count == len(values) - values.count(b"{}")


@pytest.mark.parametrize(
    ("value", "lenient", "reason"),
    [
        (b'{"Id": 3, "more": {}}', None, 'it has "Id", "more"'),
        (b'{"schema": 1, "b": 2, "c": 3, "d": 4}', None, 'it has "schema", "b", "c" …'),
        (b"{}", None, "it has no field"),
        (b'{"id": null}', None, None),
        (b'{"other": 1, "id": null}', None, None),
        (b'{"ID": null}', "any_case", None),
        (b'{"Id": 3}', "any_case", None),
    ],
)
def test_a_record_without_a_field_of_the_columns_is_bad(
    value: bytes, lenient: Leniency | None, reason: str | None
) -> None:
    """Before, it became a row of nulls without a word."""
    columns, taken = parse_columns("id BIGINT, s STRING"), frozenset([lenient] if lenient else [])
    strict = StrictJson.of(columns, JsonSettings(lenient=taken))
    values = [b'{"id": 1}', value, None, b'{"s": "x"}']
    decoded = strict.decode(pa.array(values, pa.binary()))
    assert decoded.reasons.to_pylist() == [None, reason, None, None]
    assert decoded.codes.to_pylist() == [None, reason and "RM610", None, None]
    assert decoded.rows.is_valid().to_pylist() == [True, reason is None, False, True]
    allowed = StrictJson.of(columns, replace(strict.settings, empty=True))
    assert allowed.decode(pa.array(values, pa.binary())).codes.null_count == len(values)
