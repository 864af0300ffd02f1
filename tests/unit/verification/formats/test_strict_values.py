"""Single values by docs/json.md: the table ``strict_json.txt``."""

from __future__ import annotations

import ast
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.tables.ports import type_of

pytestmark = pytest.mark.unit

TABLE = (Path(__file__).parent / "strict_json.txt").read_text(encoding="utf-8")
ROWS = TABLE.partition("\n\n")[2]
CASES = re.findall(r"^([A-Z][^\n]*?)(?: \[(.*?)\])? :: (.*?) => (.*)$", ROWS, re.MULTILINE)


def told(names: str) -> dict[str, Any]:
    """The settings of an entry from their short form in the table."""
    given = [each for each in re.split(", ", names) if each]
    times = {each.removeprefix("unit="): "unit" for each in given if each.startswith("unit=")}
    times |= {"cut": "fraction"} if "cut" in given else {}
    lenient = [each for each in given if each not in times and not each.startswith("unit=")]
    found: dict[str, Any] = {"lenient": lenient} if lenient else {}
    return {**found, **({"timestamps": {v: k for k, v in times.items()}} if times else {})}


def expected(text: str) -> Any:
    """The canonical value that a text of the table means."""
    if text.startswith("d'"):
        return Decimal(text[2:-1])
    if text.startswith("@") and "T" in text:
        return (datetime.fromisoformat(text[1:]) - datetime(1970, 1, 1)) // timedelta(
            microseconds=1
        )
    if text.startswith("@"):
        return (date.fromisoformat(text[1:]) - date(1970, 1, 1)).days
    return ast.literal_eval(text)


@pytest.mark.parametrize(("kind", "settings", "written", "value"), CASES)
def test_a_value_is_taken_as_the_page_says_or_refused(
    kind: str, settings: str, written: str, value: str
) -> None:
    read = reader(pa.schema([("c", type_of(kind))]), ["c"], told(settings))
    document = f'{{"x":1.5,"c":{written}}}'.encode()
    if value == "bad":
        with pytest.raises(Undecodable):
            read(document)
        return
    [found] = read(document)
    wanted = expected(value)
    assert found == wanted
    assert type(found) is type(wanted)
    if isinstance(wanted, Decimal):
        assert found.as_tuple() == wanted.as_tuple()


@pytest.mark.parametrize("kind", [pa.large_string(), pa.large_binary(), pa.large_list(pa.int8())])
def test_types_of_arrow_with_large_offsets_are_read_too(kind: pa.DataType) -> None:
    written = b"[7]" if pa.types.is_large_list(kind) else b'"QQ=="'
    read = reader(pa.schema([("c", kind)]), ["c"], {})
    assert read(b'{"c":' + written + b"}") in [("QQ==",), (b"A",), ([7],)]


def test_the_table_is_read_whole() -> None:
    lines = [each for each in ROWS.splitlines() if each and not each.startswith("#")]
    assert len(CASES) == len(lines) > 250


@pytest.mark.parametrize("nesting", [b'{"a":%s}', b"[%s]"], ids=["objects", "arrays"])
@pytest.mark.parametrize(
    "kind",
    [
        "BOOLEAN",
        "INT",
        "DOUBLE",
        "DECIMAL(5,2)",
        "STRING",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "STRUCT<a: INT>",
        "ARRAY<INT>",
        "MAP<STRING, INT>",
    ],
)
def test_a_value_that_does_not_fit_is_refused_however_deep_it_is(kind: str, nesting: bytes) -> None:
    """Its ``repr`` has more levels than Python allows."""
    value = b"1"
    for _ in range(498):
        value = nesting % value
    read = reader(pa.schema([("c", type_of(kind))]), ["c"], {})
    with pytest.raises(Undecodable, match=r"an (object|array)"):
        read(b'{"c":%s}' % value)


def test_a_message_has_the_beginning_of_a_long_text() -> None:
    read = reader(pa.schema([("c", pa.int64())]), ["c"], {})
    with pytest.raises(Undecodable) as refused:
        read(b'{"c":"%s"}' % (b"x" * 1_000_000))
    assert len(str(refused.value)) < 100
