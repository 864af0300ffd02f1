"""Records that are laid out alike are read without a parser: what is taken, and what is left."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.strict_json import layout
from rivermouth.formats.strict_json.chunk import Texts
from rivermouth.formats.strict_json.columns import ReadAs
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.layout import Layout, Slot, layout_of, read_by_layout
from rivermouth.formats.strict_json.types import JsonSettings
from tests.unit.formats.two_ways import differences

pytestmark = pytest.mark.unit
DDL = "n BIGINT, s STRING, d DOUBLE, f FLOAT, m DECIMAL(5,2), b BOOLEAN, o STRUCT<i: TINYINT>"
ALIKE = '{"n":%s,"s":%s,"d":%s,"f":%s,"m":%s,"b":%s,"o":{"i":%s},"other":%s}'
GOOD = ("7", '"text"', "1.5", "-0.25", "12.50", "true", "-1", "3")
MANY = 2_000


def record(at: int = 0, value: str | None = None) -> bytes:
    """One with another value at the place."""
    values = [*GOOD]
    values[at] = GOOD[at] if value is None else value
    return (ALIKE % tuple(values)).encode()


def taken(values: list[bytes], ddl: str = DDL) -> np.ndarray:
    """The indices of the records that are read as laid out alike."""
    decoder = StrictJson.of(parse_columns(ddl), JsonSettings())
    texts = Texts(pa.array([each.decode() for each in values]), np.arange(len(values)))
    row = ReadAs(numbers=False, wide=False).kind(pa.struct(list(decoder.schema)))
    pieces, left = read_by_layout(texts, row)
    found = np.concatenate([np.zeros(0, int), *(each.found for each in pieces)])
    assert sorted([*found, *left.records]) == [*range(len(values))]
    return found


def decoded_as_exactly(values: list[bytes], ddl: str = DDL) -> None:
    decoder = StrictJson.of(parse_columns(ddl), JsonSettings())
    assert differences(decoder, [*values]) == []


FITTING = [
    *((0, each) for each in ("0", "-0", "null", "-12", "999999999999999999")),
    *((0, each) for each in ("9223372036854775807", "-9223372036854775808")),
    *((1, each) for each in ('""', '"é 😀 } , : {"', '"\x7f"')),
    *((2, each) for each in ("1e10", "-0.0", "null")),
    (3, "1e9"),
    *((4, each) for each in ("0", "-999.99", "null")),
    *((5, each) for each in ("false", "null")),
    (6, "127"),
    *((7, each) for each in ("1e999", "null", "false")),
]


@pytest.mark.parametrize(("at", "value"), FITTING)
def test_a_value_that_surely_fits_is_taken(at: int, value: str) -> None:
    values = [record()] * MANY + [record(at, value)]
    assert MANY in taken(values)
    decoded_as_exactly(values)


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The records of which a layout was made, in a process that has read none before."""
    samples: list[bytes] = []

    def sampled_layout(sample: bytes, row: pa.StructType) -> Layout | None:
        samples.append(sample)
        return layout_of(sample, row)

    monkeypatch.setattr(layout, "_latest", {})
    monkeypatch.setattr(layout, "layout_of", sampled_layout)
    return samples


ONES, SWAPPED = ([each] * MANY for each in (b'{"n":1,"s":"x"}', b'{"s":"x","n":1}'))


def test_a_layout_is_that_of_the_next_records_until_they_have_another(sampled: list[bytes]) -> None:
    for values in (ONES, ONES, SWAPPED, SWAPPED, ONES, ONES):
        assert len(taken(values)) == MANY
    assert sampled == [ONES[0], SWAPPED[0], ONES[0]]


def test_a_layout_is_forgotten_only_by_as_many_records_of_another(sampled: list[bytes]) -> None:
    assert len(taken(ONES)) == MANY
    assert len(taken(SWAPPED[:100])) == 0
    assert len(taken([*ONES, *SWAPPED])) == 2 * MANY
    assert len(taken(ONES)) == MANY
    assert sampled == [ONES[0], SWAPPED[0]]
    assert len(taken([b"7"] * MANY)) == 0
    assert layout._latest == {}


def test_a_layout_is_forgotten_where_fewer_than_half_have_it(sampled: list[bytes]) -> None:
    others, ones = SWAPPED[: MANY * 3 // 5], ONES[: MANY * 2 // 5]
    assert len(taken(ONES)) == MANY
    assert taken([*ones, *others]).tolist() == [*range(len(ones))]
    assert taken([*others, *ones]).tolist() == [*range(len(others))]
    assert sampled == [ONES[0], ONES[0], SWAPPED[0]]


LEFT = [
    *((0, each) for each in ("01", "+1", "1.0", "1e2", "0x1", "-", "\u0661")),
    *((0, each) for each in ("9223372036854775808", "-9223372036854775809")),
    *((0, each) for each in ("true", "nul", "1 2", "1,2", "{}", "[1]")),
    *((0, each) for each in ('"7"', '7,"k":1', "", " 7")),
    *((1, each) for each in ("null", "7", '"a\\nb"', '"\x1f"', '"a"b"', '"a","s":"b"')),
    *((2, each) for each in ("1.", ".5", "01.5", "NaN", "Infinity", "inf", "1e400", "1e-400")),
    *((2, each) for each in ("1" + 30 * "0", "0x1p3", '"1.5"')),
    *((3, each) for each in ("1e39", "1e-46")),
    *((4, each) for each in ("1e1", "1.", "12.505", "1000000000000000000000000000000000000.5")),
    *((5, each) for each in ("True", "1", '"true"', "truee")),
    *((7, each) for each in ("01", "tru", "NaN", "1.", '{"a":1}', "[1]", '"x"', "")),
]


@pytest.mark.parametrize(("at", "value"), LEFT)
def test_a_value_that_may_not_fit_is_left(at: int, value: str) -> None:
    values = [record()] * MANY + [record(at, value)]
    assert taken(values).tolist() == [*range(MANY)]
    decoded_as_exactly(values)


CHANGED = [
    *((b'"n"', b'"N"'), (b'"n":', b'"n" :'), (b'"n":', b'"n",'), (b',"s"', b':"s"')),
    *((b'"d"', b'"s"'), (b"}", b"]"), (b'{"i":-1}', b'"i":-1'), (b'"n":7,', b"")),
    *((b'"n":7,"s":"text"', b'"s":"text","n":7'), (b"{", b"{\n"), (b"text", b"\x00")),
]
OTHERS = [
    *(record() + each for each in (b" ", b"x", record())),
    *(b" " + record(), record()[:-1], record()[1:]),
    *(record().replace(old, new) for old, new in CHANGED),
    *(b"", b'"' * 17, b'"' * 18, b"{}"),
]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("place", [1, MANY])
def test_a_record_with_another_layout_is_left(other: bytes, place: int) -> None:
    values = [record()] * MANY
    values.insert(place, other)
    assert place not in taken(values)
    assert len(taken(values)) == MANY
    decoded_as_exactly(values)


@pytest.mark.parametrize("rest", [b"x", b" ", b"}", b'"', b'","s":"x"}'])
def test_what_stands_after_text_at_the_end_is_seen(rest: bytes) -> None:
    good = b'{"n":1,"s":"x"}'
    values = [good] * MANY + [good + rest]
    assert taken(values).tolist() == [*range(MANY)]
    decoded_as_exactly(values)


def test_space_around_a_missing_value_is_not_both_before_and_after_it() -> None:
    values = [b'{"n": 1 ,"s":"x"}'] * MANY + [b'{"n": ,"s":"x"}', b'{"n":  ,"s":"x"}']
    assert taken(values).tolist() == [*range(MANY)]
    decoded_as_exactly(values)


def test_some_layouts_are_known_at_once() -> None:
    values = [b'{"n":1,"s":"x"}', b'{"s":"x","n":1}', b'{"n": 1, "s": "x"}'] * 2_100
    assert len(taken(values)) == 0  # none of them is that of half of the records
    values.sort()
    assert len(taken(values)) == len(values)
    decoded_as_exactly(values)


def test_more_bytes_than_are_read_at_once() -> None:
    values = [record(1, f'"{"é" * length}"') for length in range(2_500)]
    assert sum(map(len, values)) > 3 << 20
    assert len(taken(values)) == len(values)
    decoded_as_exactly(values)


def test_a_long_run_is_not_looked_for_in_short_records() -> None:
    """It would be copied for each of them."""
    long = b'{"n":' + b" " * 9_000 + b"1}"
    values = [long] * 150 + [b'{"n":1}'] * 200_000
    tracemalloc.start()
    try:
        assert len(taken(values, "n BIGINT")) == len(values)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()


FEW_OF_A_KIND = [
    [record()] * 1_999,
    [record(3, "1.25e-15")] * MANY,
    [record(0, "7.0")] * MANY,
    [b'{"s":"' + b"x" * 10_001 + b'"}'] * MANY,
    [b"{" + b",".join(b'"k%d":1' % each for each in range(41)) + b"}"] * MANY,
]


@pytest.mark.parametrize("values", FEW_OF_A_KIND, ids=["few", "exponent", "point", "long", "names"])
def test_what_the_parser_reads_as_fast_is_left_to_it(values: list[bytes]) -> None:
    assert len(taken(values)) == 0


def test_a_part_of_an_array_is_read_as_that_part() -> None:
    decoder = StrictJson.of(parse_columns(DDL), JsonSettings())
    whole = pa.array([record(0, str(each)) for each in range(3_000)], pa.binary())
    for kind in (pa.binary(), pa.large_binary()):
        rows = decoder.decode(whole.cast(kind).slice(100, 2_500)).rows
        assert rows.field("n").to_pylist() == [*range(100, 2_600)]


SAMPLE = b'{"n": 1,"s":"x","o":{"i":null}}'


def test_a_layout_says_what_stays_and_where_values_stand() -> None:
    row = pa.struct({"n": pa.int64(), "s": pa.string(), "o": pa.struct({"j": pa.int64()})})
    assert layout_of(SAMPLE, row) == Layout(
        runs=(b'{"n": ', b',"s":"', b'","o":{"i":', b"}}"),
        slots=(
            Slot(("n",), pa.int64(), quoted=False),
            Slot(("s",), pa.string(), quoted=True),
            Slot(("o", "i"), None, quoted=False),
        ),
        objects=frozenset({(), ("o",)}),
    )


NO_SAMPLES = [
    *b"""
    { 7 {"n":1}x {"n":"1"} {"n":{}} {"s":{"i":1}} {"a":[1]} {"s":"\\n"} {"n":1,"n":1}
    {"a":1,"a":1} {"a":{"b":1,"b":1}} {"n":01}
""".split(),
    *(b"", b"\xff"),
]


@pytest.mark.parametrize("sample", NO_SAMPLES)
def test_such_a_record_has_no_layout(sample: bytes) -> None:
    assert layout_of(sample, pa.struct({"n": pa.int64(), "s": pa.string()})) is None
