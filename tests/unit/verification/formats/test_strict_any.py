"""Any value of any type is read back from each of its spellings."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermouth.verification.formats.json import reader
from rivermouth.verification.formats.json_scalars import single

pytestmark = pytest.mark.unit

Spelt = st.SearchStrategy[tuple[Any, str]]
"""Canonical values, each with one of its spellings in JSON."""
EPOCH = datetime(1970, 1, 1)
SPACE = st.text(" \t\r\n", max_size=2)
NAMES = st.text(max_size=5).filter(lambda text: not re.search("[\ud800-\udfff]", text))


def quoted(text: str, escaped: frozenset[int]) -> str:
    """Text as JSON; the characters at these places, and those that must be, as escapes."""
    parts = []
    for at, char in enumerate(text):
        if at % 7 in escaped or char in '"\\' or char < " ":
            units = char.encode("utf-16-be").hex()
            parts += [f"\\u{units[each : each + 4]}" for each in range(0, len(units), 4)]
        else:
            parts.append(char)
    return f'"{"".join(parts)}"'


ESCAPED = st.frozensets(st.integers(0, 6))
TEXTS: Spelt = st.builds(lambda text, at: (text, quoted(text, at)), NAMES, ESCAPED)


def whole(bits: int) -> Spelt:
    numbers = st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    spell: list[Callable[[int, int], str]] = [
        lambda number, _: str(number),
        lambda number, zeros: f"{number}.{'0' * (zeros + 1)}",
        lambda number, zeros: f"{number}{'0' * zeros if number else ''}e-{zeros}",
        lambda number, zeros: f"{number}.0E+00",
    ]
    made = st.tuples(numbers, st.sampled_from(spell), st.integers(0, 9))
    return made.map(lambda each: (each[0], each[1](each[0], each[2])))


def decimals(precision: int, scale: int) -> Spelt:
    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda units: Decimal(units).scaleb(-scale))
    spell = st.sampled_from(["{:f}", "{:E}", '"{:f}"', '"{:E}"', '"{:+f}"', "{:f}0", '"{:f}00"'])
    fits = st.tuples(values, spell).filter(lambda each: scale > 0 or "0" not in each[1])
    return fits.map(lambda each: (each[0], each[1].format(each[0])))


def moments(zoned: bool) -> Spelt:
    inner = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
    minutes = st.integers(-23 * 60 - 59, 23 * 60 + 59)
    more = st.tuples(inner, minutes, st.sampled_from("Tt "), st.sampled_from(["", "0", "000"]))

    def spelt(each: tuple[datetime, int, str, str]) -> tuple[int, str]:
        at, ahead, between, zeros = each
        here = (at + timedelta(minutes=ahead if zoned else 0)).isoformat(between, "microseconds")
        zone = f"{'-' if ahead < 0 else '+'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"
        return (at - EPOCH) // timedelta(microseconds=1), f'"{here}{zeros}{zone if zoned else ""}"'

    return more.map(spelt)


PLAIN: list[tuple[pa.DataType, Spelt]] = [
    (pa.bool_(), st.sampled_from([(True, "true"), (False, "false")])),
    *((kind, whole(kind.bit_width)) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    (pa.float64(), st.floats(allow_nan=False, allow_infinity=False).map(lambda n: (n, repr(n)))),
    (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False).map(
        lambda n: (single(n), f"{n:.60e}"))),
    (pa.decimal128(12, 2), decimals(12, 2)),
    (pa.decimal128(38, 38), decimals(38, 38)),
    (pa.decimal128(38, 0), decimals(38, 0)),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary().map(lambda each: (each, f'"{base64.b64encode(each).decode()}"'))),
    (pa.date32(), st.dates().map(lambda each: ((each - date(1970, 1, 1)).days, f'"{each}"'))),
    (pa.timestamp("us", tz="UTC"), moments(zoned=True)),
    (pa.timestamp("us"), moments(zoned=False)),
]  # fmt: skip


def joined(opens: str, parts: list[str], closes: str, space: str) -> str:
    return opens + space + f"{space},{space}".join(parts) + space + closes


def nested(kind: pa.DataType, values: Spelt) -> st.SearchStrategy[tuple[pa.DataType, Spelt]]:
    """A type around another one, with its values."""
    held = st.one_of(st.just((None, "null")), values)
    lists = st.tuples(st.lists(held, max_size=3), SPACE).map(
        lambda each: ([v for v, _ in each[0]], joined("[", [t for _, t in each[0]], "]", each[1]))
    )
    pairs = st.lists(st.tuples(TEXTS, held), max_size=3, unique_by=lambda each: each[0][0])
    maps = st.tuples(pairs, SPACE).map(
        lambda each: (
            [(name[0], value[0]) for name, value in each[0]],
            joined("{", [f"{name[1]}:{value[1]}" for name, value in each[0]], "}", each[1]),
        )
    )
    structs = st.tuples(held, TEXTS.filter(lambda each: each[0] != "f"), SPACE).map(
        lambda each: (
            {"f": each[0][0]},
            joined("{", [f'{each[1][1]}:"no field"', f'"\\u0066":{each[0][1]}'], "}", each[2]),
        )
    )
    return st.sampled_from(
        [
            (pa.list_(kind), lists),
            (pa.map_(pa.string(), kind), maps),
            (pa.struct([("f", kind)]), structs),
        ]
    )


KINDS = st.recursive(
    st.sampled_from(PLAIN), lambda inner: inner.flatmap(lambda each: nested(*each)), max_leaves=4
)


@given(data=st.data(), lenient=st.sets(st.sampled_from(["number_in_text", "anything_as_text"])))
def test_a_value_is_read_back_from_each_of_its_spellings(
    data: st.DataObject, lenient: set[str]
) -> None:
    kind, values = data.draw(KINDS)
    value, text = data.draw(values)
    space = data.draw(SPACE)
    document = f'{space}{{{space}"x":{{"c":1}},"c"{space}:{text}{space}}}{space}'.encode()
    [found] = reader(pa.schema([("c", kind)]), ["c"], {"lenient": [*lenient]})(document)
    assert found == value
    assert type(found) is type(value)
