"""The inputs of the binary part of Google's conformance suite, as far as columns can take them.

A value of each type in each place, and what is cut or not allowed. Google's parser agrees with all.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.formats.judged import BAD
from tests.unit.formats.protobuf.judged import (
    ONE,
    REPEATED,
    SCALARS,
    UNPACKED,
    by_google,
    judged,
    number_of,
)
from tests.unit.formats.protobuf.wire import (
    BLOCK,
    END,
    FIXED_32,
    FIXED_64,
    GROUP,
    VARINT,
    block,
    field,
    tag,
    varint,
    zigzag,
)

pytestmark = pytest.mark.unit

INF, NAN = float("inf"), float("nan")
VERSIONS = ("three.All", "two.All")
COLUMN: dict[str, pa.DataType] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), pa.int64()),
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "Mood": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
WIRE = {
    **dict.fromkeys(SCALARS[:8], VARINT),
    **dict.fromkeys(SCALARS[8:11], FIXED_64),
    **dict.fromkeys(SCALARS[11:14], FIXED_32),
    **dict.fromkeys(SCALARS[14:], BLOCK),
}
VALID: dict[str, list[tuple[bytes, Any]]] = {
    "int32": [
        *((varint(each), each) for each in (0, 12345, 2**31 - 1, -(2**31))),
        *((varint(1, more=each), 1) for each in (1, 2, 4, 5, 9)),
        (varint(2**33), 0),
        (varint(2**33 - 1), -1),
        (varint(2**31), -(2**31)),
        (b"\xff" * 9 + b"\x7f", -1),
    ],
    "int64": [
        *((varint(each), each) for each in (0, 12345, 2**33, 2**63 - 1, -(2**63), -1)),
        *((varint(2**40, more=each), 2**40) for each in (1, 4)),
        (b"\xff" * 9 + b"\x7f", -1),
    ],
    "uint32": [
        *((varint(each), each) for each in (0, 12345, 2**32 - 1)),
        *((varint(1, more=each), 1) for each in (1, 9)),
        (varint(2**33), 0),
        (varint(2**33 - 1), 2**32 - 1),
    ],
    "uint64": [
        *((varint(each), Decimal(each)) for each in (0, 12345, 2**33, 2**63, 2**64 - 1)),
        (varint(1, more=9), Decimal(1)),
    ],
    "sint32": [
        *((zigzag(each), each) for each in (0, 12345, 2**31 - 1, -(2**31), -1)),
        (varint(2**33), 0),
        (varint(2**33 + 1), -1),
        (varint(2**33 - 1), -(2**31)),
    ],
    "sint64": [(zigzag(each), each) for each in (0, 12345, 2**63 - 1, -(2**63), -1)],
    "bool": [
        *((varint(each), bool(each)) for each in (0, 1, 2, 12345678, 2**33, 2**63)),
        (varint(1, more=9), True),
        (varint(0, more=4), False),
    ],
    "Mood": [
        *((varint(n), name) for n, name in ((0, "CALM"), (1, "GLAD"), (2, "SAD"), (-1, "LOW"))),
        (varint(2**32 + 1), "GLAD"),
        (varint(2**32 - 1), "LOW"),
    ],
    "fixed64": [(struct.pack("<Q", n), Decimal(n)) for n in (0, 12345, 2**64 - 1)],
    "sfixed64": [(struct.pack("<q", n), n) for n in (0, 12345, 2**63 - 1, -(2**63))],
    "double": [(struct.pack("<d", n), n) for n in (0.1, 5e-324, 1.8e308, -0.0, INF, -INF, NAN)],
    "fixed32": [(struct.pack("<I", n), n) for n in (0, 12345, 2**32 - 1)],
    "sfixed32": [(struct.pack("<i", n), n) for n in (0, 12345, 2**31 - 1, -(2**31))],
    "float": [(struct.pack("<f", n), n) for n in (0.5, 2.0**-149, 2.0**127, -0.0, INF, -INF, NAN)],
    "string": [
        (varint(len(each.encode())) + each.encode(), each)
        for each in ("", "Hello world!", "'\"?\\\a\b\n\r\t\v\0", "Здравствуй", "🚢")
    ],
    "bytes": [(varint(len(each)) + each, each) for each in (b"", b"Hello", b"\xff\xfe", b"\0")],
}
"""Values of each type, as they are written. The last one of each is not the value of absence."""
SINGLE = [
    (name, kind, at) for name in VERSIONS for kind in SCALARS for at in range(len(VALID[kind]))
]


def same(name: str, row: dict[str, pa.DataType], value: bytes) -> object:
    """How the value is judged; Google's parser agrees."""
    kind = pa.struct([*row.items()])
    found = judged(name, kind, value)
    assert repr(by_google(name, kind, value)) == repr(found)
    return found


@pytest.mark.parametrize(("name", "kind", "at"), SINGLE)
def test_a_value_of_each_type(name: str, kind: str, at: int) -> None:
    written, expected = VALID[kind][at]
    value = tag(number_of(kind), WIRE[kind]) + written
    assert repr(same(name, {f"f_{kind}": COLUMN[kind]}, value)) == repr((expected,))
    one = tag(number_of(kind) + ONE, WIRE[kind]) + written
    assert repr(same(name, {f"o_{kind}": COLUMN[kind]}, one)) == repr((expected,))


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", VERSIONS)
def test_of_many_values_the_last_one_counts(name: str, kind: str) -> None:
    at = tag(number_of(kind), WIRE[kind])
    value = b"".join(at + written for written, _ in VALID[kind])
    assert repr(same(name, {f"f_{kind}": COLUMN[kind]}, value)) == repr((VALID[kind][-1][1],))


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", VERSIONS)
def test_of_a_oneof_the_last_one_counts(name: str, kind: str) -> None:
    other = "bytes" if kind == "string" else "string"
    at, (written, expected) = tag(number_of(kind) + ONE, WIRE[kind]), VALID[kind][-1]
    beside = block(number_of(other) + ONE, b"")
    row = {f"o_{kind}": COLUMN[kind], f"o_{other}": COLUMN[other]}
    assert repr(same(name, row, beside + at + written)) == repr((expected, None))
    empty = "" if other == "string" else b""
    assert same(name, row, at + written + beside) == (None, empty)
    again = b"".join(at + each for each, _ in VALID[kind])
    assert repr(same(name, row, again)) == repr((expected, None))


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", VERSIONS)
def test_values_of_a_list_are_packed_or_not(name: str, kind: str) -> None:
    all_of, expected = [each for each, _ in VALID[kind]], [each for _, each in VALID[kind]]
    packable = WIRE[kind] != BLOCK
    for prefix, more in (("r", REPEATED), ("u", UNPACKED)) if packable else (("r", REPEATED),):
        number, row = number_of(kind) + more, {f"{prefix}_{kind}": pa.list_(COLUMN[kind])}
        single = b"".join(tag(number, WIRE[kind]) + each for each in all_of)
        assert repr(same(name, row, single)) == repr((expected,))
        if packable:
            packed = block(number, b"".join(all_of))
            assert repr(same(name, row, packed)) == repr((expected,))
            mixed = packed + single + block(number, b"") + packed
            assert repr(same(name, row, mixed)) == repr((expected * 3,))


CUT = {VARINT: b"\x80", FIXED_64: b"abcdefg", BLOCK: b"\x80", FIXED_32: b"abc"}
PLACES = ("f", "r", "o", "unknown")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("name", VERSIONS)
def test_a_value_that_is_cut(name: str, kind: str, place: str) -> None:
    number = number_of(kind) + {"f": 0, "r": REPEATED, "o": ONE, "unknown": 600}[place]
    column = pa.list_(COLUMN[kind]) if place == "r" else COLUMN[kind]
    row = {"f_int32": pa.int32()} if place == "unknown" else {f"{place}_{kind}": column}
    wire = WIRE[kind]
    longer = [tag(number, BLOCK) + b"\1"] if place == "r" or wire == BLOCK else []
    packed = [block(number, CUT[wire])] if place == "r" and wire != BLOCK else []
    for value in (tag(number, wire), tag(number, wire) + CUT[wire], *longer, *packed):
        assert same(name, row, value) == BAD
        assert same(name, row, field(1, VARINT, varint(1)) + value) == BAD


INNER = {"inner": pa.struct([("n", pa.int32())])}
CUT_INSIDE = {
    "a number in a message": block(101, tag(1, VARINT) + b"\x80"),
    "a message longer than the record": tag(101, BLOCK) + varint(3) + b"\x08\1",
    "a message in a message": block(101, tag(2, BLOCK) + varint(2) + b"a"),
    "an unknown group in a message": block(101, tag(9, GROUP)),
    "the end of a group in a message": block(101, tag(9, END)),
}


@pytest.mark.parametrize("value", CUT_INSIDE.values(), ids=CUT_INSIDE)
@pytest.mark.parametrize("name", VERSIONS)
def test_what_is_cut_in_a_message(name: str, value: bytes) -> None:
    assert same(name, INNER, value) == BAD


FIVE = {"f_int32": pa.int32()}
ILLEGAL = {
    "number 0, eight bytes": b"\1DEADBEEF",
    "number 0, a length": b"\2\1\1",
    "number 0, a group": b"\3\4",
    "number 0, four bytes": b"\5DEAD",
    "number 0, a varint": b"\0\1",
    "a number far too high": b"\x88\x80\x80\x80\x80\x80\x0f" + varint(1234),
    "a number just too high": b"\x88\x80\x80\x80\x40" + varint(1234),
    "a tag of nine bytes": b"\x88" + b"\x80" * 7 + b"\0" + varint(1234),
    "a tag of six bytes": varint(8, more=5) + varint(1234),
    "a tag of ten bytes": varint(8, more=9) + varint(1234),
    "a tag of thirteen bytes": b"\x88" + b"\x80" * 11 + b"\0" + varint(1234),
    "a tag of ten bytes, all bits": b"\xff" * 9 + b"\1",
    "a tag without an end": b"\x88\x80",
    "a value of eleven bytes": tag(1, VARINT) + varint(1, more=10),
    "an unknown value of eleven bytes": tag(600, VARINT) + varint(1, more=10),
    **{
        f"wire type {wire}, number {number}, {value}": bytes([number << 3 | wire, value])
        for wire in (6, 7)
        for number in range(4)
        for value in range(4)
    },
}
LENGTHS = {
    "a length of 2^32": b"\x80\x80\x80\x80\x10",
    "a length of 2^31": b"\x80\x80\x80\x80\x08",
    "a length of six bytes": varint(1, more=5) + b"a",
    "a length of ten bytes": varint(1, more=9) + b"a",
    "a length of -1": varint(-1) + b"a",
}
UNMATCHED = {
    "an end": tag(201, END),
    "an end of a field of another type": tag(1, END),
    "an end, with data": tag(1, END) + block(15, b"hello"),
    "a beginning": tag(201, GROUP),
    "a beginning of a field of another type": tag(1, GROUP),
    "a beginning, with data": tag(1, GROUP) + block(15, b"hello"),
    "another number at the end": tag(201, GROUP) + block(2, b"hello") + tag(202, END),
    "an end in a group": tag(201, GROUP) + tag(202, END) + tag(201, END),
    "a beginning in a group": tag(201, GROUP) + tag(202, GROUP) + tag(201, END),
    "another number in a group": tag(201, GROUP)
    + tag(202, GROUP)
    + block(2, b"hello")
    + tag(203, END)
    + tag(201, END),
    "a tag of six bytes in a group": tag(201, GROUP) + varint(8, more=5) + b"\1" + tag(201, END),
    "a tag of 33 bits in a group": tag(201, GROUP) + varint(2**32) + b"\1" + tag(201, END),
    "101 groups in each other": tag(201, GROUP) * 101 + tag(201, END) * 101,
    "100 groups in a message": block(101, tag(201, GROUP) * 100 + tag(201, END) * 100),
}
ALL_BAD = {
    **ILLEGAL,
    **{name: tag(15, BLOCK) + each for name, each in LENGTHS.items()},
    **{f"{name}, unknown": tag(600, BLOCK) + each for name, each in LENGTHS.items()},
    **{f"{name}, packed": tag(21, BLOCK) + each for name, each in LENGTHS.items()},
    **UNMATCHED,
}


@pytest.mark.parametrize("value", ALL_BAD.values(), ids=ALL_BAD)
@pytest.mark.parametrize("name", VERSIONS)
def test_what_the_encoding_does_not_allow(name: str, value: bytes) -> None:
    row = {**FIVE, **INNER, "f_string": pa.string(), "r_int32": pa.list_(pa.int32())}
    assert same(name, row, value) == BAD
    assert same(name, row, field(1, VARINT, varint(5)) + value) == BAD


UNKNOWN = {
    "a varint": field(600, VARINT, varint(1)),
    "a varint of ten bytes": field(600, VARINT, varint(1, more=9)),
    "eight bytes": field(600, FIXED_64, b"abcdefgh"),
    "four bytes": field(600, FIXED_32, b"abcd"),
    "a block": block(600, b"\xff"),
    "an empty block": block(600, b""),
    "all kinds under one number": block(600, b"abc") + field(600, VARINT, b"\1") + block(600, b"d"),
    "the highest number": field(2**29 - 1, VARINT, b"\1"),
    "a tag of five bytes": varint(600 << 3, more=3) + b"\1",
    "an empty group": tag(600, GROUP) + tag(600, END),
    "a group of all kinds": tag(600, GROUP)
    + field(1, VARINT, b"\1")
    + field(2, FIXED_64, b"abcdefgh")
    + block(3, b"a")
    + field(4, FIXED_32, b"abcd")
    + tag(5, GROUP)
    + tag(5, END)
    + tag(600, END),
    "number 0 in a group": tag(600, GROUP) + b"\0\1" + tag(600, END),
    "100 groups in each other": tag(600, GROUP) * 100 + tag(600, END) * 100,
    "a known field of another wire type": block(2, b"a") + field(15, VARINT, b"\1"),
    "a known field as a group": tag(2, GROUP) + tag(2, END),
}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
@pytest.mark.parametrize("name", VERSIONS)
def test_an_unknown_field_is_passed_over(name: str, unknown: bytes) -> None:
    five = field(1, VARINT, varint(5))
    for value in (unknown + five, five + unknown, unknown + five + unknown):
        assert same(name, FIVE, value) == (5,)
    inside = block(101, unknown + five)
    deep = unknown.count(tag(600, GROUP)) == 100
    assert same(name, INNER, inside) == (BAD if deep else ({"n": 5},))
