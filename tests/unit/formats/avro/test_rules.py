"""The rules of Avro's specification (1.12), one by one: how schemas are resolved, and how values
are written. A column stands in the place of a reader's schema.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.formats.avro.judged import FOREIGN, judged, number, record
from tests.unit.formats.judged import BAD, UNFIT, Refused

pytestmark = pytest.mark.unit

INT, LONG, REAL, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
TEXT, BYTES, TRUTH = pa.string(), pa.binary(), pa.bool_()
INTS, COUNTS = pa.list_(INT), pa.map_(TEXT, INT)
SUIT = {"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}
MD5 = {"type": "fixed", "name": "Md5", "size": 3}
OF_INT, OF_TEXT = {"type": "array", "items": "int"}, {"type": "array", "items": "string"}
MAP = {"type": "map", "values": "int"}
INF, NAN = float("inf"), float("nan")


def real(value: float) -> bytes:
    return struct.pack("<f", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


PROMOTED: dict[str, tuple[Any, pa.DataType, bytes, object]] = {
    "int is promoted to long": ("int", LONG, number(-7), -7),
    "int is promoted to float": ("int", REAL, number(3), 3.0),
    "int that a float would round": ("int", REAL, number(2**24 + 1), BAD),
    "int is promoted to double": ("int", DOUBLE, number(2**31 - 1), 2.0**31 - 1),
    "long is promoted to float": ("long", REAL, number(2**40), 2.0**40),
    "long that a float would round": ("long", REAL, number(2**40 + 1), BAD),
    "long is promoted to double": ("long", DOUBLE, number(-(2**63)), -(2.0**63)),
    "long that a double would round": ("long", DOUBLE, number(2**53 + 1), BAD),
    "float is promoted to double": ("float", DOUBLE, real(0.1), 0.10000000149011612),
    "string is promoted to bytes": ("string", BYTES, b"\4\xc3\xa9", b"\xc3\xa9"),
    "bytes are promoted to string": ("bytes", TEXT, b"\4\xc3\xa9", "é"),
    "bytes that are no text": ("bytes", TEXT, b"\4\xc3\x28", BAD),
    "long in the range of int": ("long", INT, number(2**31 - 1), 2**31 - 1),
    "long beyond the range of int": ("long", INT, number(2**31), BAD),
    "double is not promoted to float": ("double", REAL, double(1.5), UNFIT),
    "float is not promoted to long": ("float", LONG, real(1.0), UNFIT),
    "double is not promoted to int": ("double", INT, double(1.0), UNFIT),
    "string is not promoted to int": ("string", INT, b"\2\x31", UNFIT),
    "int is not promoted to string": ("int", TEXT, number(1), UNFIT),
    "boolean is not promoted to int": ("boolean", INT, b"\1", UNFIT),
    "int is not promoted to boolean": ("int", TRUTH, number(1), UNFIT),
    "an enum is its symbol": (SUIT, TEXT, number(1), "HEARTS"),
    "an enum is not promoted to int": (SUIT, INT, number(1), UNFIT),
    "an enum is not promoted to bytes": (SUIT, BYTES, number(1), UNFIT),
    "fixed, whatever its name and size": (MD5, BYTES, b"abc", b"abc"),
    "fixed is not promoted to string": (MD5, TEXT, b"abc", UNFIT),
    "null is null in a column of any type": ("null", LONG, b"", None),
    "items are promoted": (OF_INT, pa.list_(LONG), b"\4\2\4\0", [1, 2]),
    "items that are not promoted": (OF_TEXT, pa.list_(LONG), b"\0", UNFIT),
    "values of a map are promoted": (MAP, pa.map_(TEXT, DOUBLE), b"\2\2a\4\0", [("a", 2.0)]),
    "values of a map that are not": (MAP, pa.map_(TEXT, TEXT), b"\0", UNFIT),
    "an array is no map": (OF_INT, COUNTS, b"\0", UNFIT),
    "a map is no array": (MAP, INTS, b"\0", UNFIT),
    "a record is no int": (record(("a", "int"), name="I"), INT, number(1), UNFIT),
    "an int is no record": ("int", pa.struct([("a", INT)]), number(1), UNFIT),
    "a union, its first branch": (["null", "int"], LONG, number(0), None),
    "a union, its second branch": (["null", "int"], LONG, number(1) + number(5), 5),
    "a union, each branch is promoted": (["int", "double"], DOUBLE, number(0) + number(5), 5.0),
    "a union, a branch that fits": (["int", "string"], LONG, number(0) + number(5), 5),
    "a union, a branch that does not": (["int", "string"], LONG, number(1) + b"\2a", BAD),
    "a union without a branch that fits": (["null", "string"], LONG, number(0), UNFIT),
    "a union of nothing but null": (["null"], LONG, number(0), None),
    "a union without a branch": ([], LONG, number(0), BAD),
}


@pytest.mark.parametrize("case", PROMOTED.values(), ids=PROMOTED)
def test_a_type_for_a_column(case: tuple[Any, pa.DataType, bytes, object]) -> None:
    writer, kind, value, expected = case
    found = judged(record(("x", "int"), ("v", writer)), pa.struct([("v", kind)]), b"\0" + value)
    assert repr(found) == repr(expected if isinstance(expected, Refused) else (expected,))


AB = pa.struct([("a", INT), ("b", TEXT)])
B = pa.struct([("b", TEXT)])
I_AB = record(("a", "int"), ("b", "string"), name="I")
HIDDEN: dict[str, tuple[Any, bytes]] = {
    "null": ("null", b""),
    "a boolean": ("boolean", b"\1"),
    "a boolean that is none": ("boolean", b"\2"),
    "an int": ("int", number(-(2**31))),
    "a long": ("long", number(-(2**63))),
    "a float": ("float", real(1.5)),
    "a double": ("double", double(1.5)),
    "bytes": ("bytes", b"\6abc"),
    "a string": ("string", b"\6abc"),
    "a string that is not UTF-8": ("string", b"\2\xff"),
    "fixed": (MD5, b"abc"),
    "an enum": (SUIT, number(1)),
    "an enum without such a symbol": (SUIT, number(9)),
    "an array": (OF_TEXT, b"\4\2a\2b\0"),
    "an array of blocks with sizes": (OF_TEXT, b"\3\10\2a\2b\0"),
    "a map": (MAP, b"\2\2a\4\0"),
    "a map in which a key comes twice": (MAP, b"\4\2a\4\2a\6\0"),
    "a union": (["null", "string"], b"\2\2a"),
    "a record": (I_AB, b"\2\2a"),
}
"""Fields that no column takes, and their bytes."""


@pytest.mark.parametrize("case", HIDDEN.values(), ids=HIDDEN)
def test_a_field_that_no_column_takes_is_passed_over(case: tuple[Any, bytes]) -> None:
    writer, value = case
    assert judged(record(("x", writer), ("b", "string")), B, value + b"\2b") == ("b",)


ALIASED = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "x", "type": "int", "aliases": ["a"]}],
}
GIVEN = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "string", "default": "d"}]}
SUITS = {**SUIT, "default": "CLUBS"}
RECORDS: dict[str, tuple[Any, pa.StructType, bytes, object]] = {
    "fields in another order": (record(("b", "string"), ("a", "int")), AB, b"\2b\2", (1, "b")),
    "fields inside in another order": (
        record(("i", record(("b", "string"), ("a", "int"), name="I"))),
        pa.struct([("i", AB)]),
        b"\2b\2",
        ({"a": 1, "b": "b"},),
    ),
    "a column without a field": (record(("b", "string")), AB, b"\2b", (None, "b")),
    "the name of the record": (record(("b", "string"), name="other.Name"), B, b"\2b", ("b",)),
    "none of the columns": (record(("x", "int")), AB, b"\2", FOREIGN),
    "a name in another case": (record(("B", "string")), B, b"\2b", FOREIGN),
    "an alias of the writer": (ALIASED, AB, b"\2", FOREIGN),
    "a default of the writer": (GIVEN, AB, b"\2b", (None, "b")),
    "a default of the writer's enum": (record(("b", SUITS)), B, number(2), BAD),
    "no record": ("int", B, number(1), UNFIT),
    "null in the place of a record": ("null", B, b"\0", BAD),
    "a union of records, the first": ([I_AB, record(("b", "string"))], AB, b"\0\2\2b", (1, "b")),
    "a union of records, the second": (
        [I_AB, record(("b", "string"))],
        AB,
        b"\2\2b",
        (None, "b"),
    ),
    "a union with null, a record": (["null", I_AB], AB, b"\2\2\2b", (1, "b")),
    "a union with null, null": (["null", I_AB], AB, b"\0", BAD),
    "a union, none of the columns": (["null", record(("x", "int"))], AB, b"\2\2", FOREIGN),
    "it holds itself": (record(("b", "string"), ("x", ["null", "R"])), B, b"\2b\0", UNFIT),
    "it holds itself in a list": (
        record(("b", "string"), ("x", {"type": "array", "items": "R"})),
        B,
        b"\2b\0",
        UNFIT,
    ),
}


@pytest.mark.parametrize("case", RECORDS.values(), ids=RECORDS)
def test_a_record_for_columns(case: tuple[Any, pa.StructType, bytes, object]) -> None:
    schema, row, value, expected = case
    assert judged(schema, row, value) == expected


WRITTEN: dict[str, tuple[Any, pa.DataType, bytes, object]] = {
    **{
        f"int {each}": ("int", INT, number(each), each)
        for each in (0, -1, 1, -2, 2, -64, 63, 64, -65, 8191, -8193, 2**31 - 1, -(2**31))
    },
    **{
        f"long {each}": ("long", LONG, number(each), each)
        for each in (0, -64, 64, 2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63))
    },
    "the least long has ten bytes": ("long", LONG, b"\xff" * 9 + b"\1", -(2**63)),
    "a long of 65 bits": ("long", LONG, b"\xff" * 9 + b"\2", BAD),
    "a long of 70 bits": ("long", LONG, b"\xff" * 9 + b"\x7f", BAD),
    "an int of 33 bits": ("int", LONG, number(2**31), BAD),
    "an int of 33 bits, negative": ("int", LONG, number(-(2**31) - 1), BAD),
    "a long with bytes too many": ("long", LONG, b"\x82" + b"\x80" * 8 + b"\0", 1),
    "a long of eleven bytes": ("long", LONG, b"\x82" + b"\x80" * 9 + b"\0", BAD),
    "a long of thirty bytes": ("long", LONG, b"\x82" + b"\x80" * 28 + b"\0", BAD),
    "a long without an end": ("long", LONG, b"\x80" * 10, BAD),
    "an int with bytes too many": ("int", INT, b"\x82\x80\x80\x80\x80\0", 1),
    "an int without an end": ("int", INT, b"\x80" * 5, BAD),
    "a long without a byte": ("long", LONG, b"", BAD),
    "a boolean, 0": ("boolean", TRUTH, b"\0", False),
    "a boolean, 1": ("boolean", TRUTH, b"\1", True),
    "a boolean, 2": ("boolean", TRUTH, b"\2", BAD),
    "a boolean, 255": ("boolean", TRUTH, b"\xff", BAD),
    "a boolean without a byte": ("boolean", TRUTH, b"", BAD),
    **{
        f"float {each}": ("float", REAL, real(each), each)
        for each in (0.0, -0.0, INF, -INF, NAN, 2.0**-149)
    },
    **{
        f"double {each}": ("double", DOUBLE, double(each), each)
        for each in (0.0, -0.0, INF, -INF, NAN, 5e-324)
    },
    "a NaN with other bits": ("double", DOUBLE, b"\1\0\0\0\0\0\xf4\xff", NAN),
    "a float of three bytes": ("float", REAL, b"\0\0\0", BAD),
    "a double of seven bytes": ("double", DOUBLE, b"\0" * 7, BAD),
    "empty bytes": ("bytes", BYTES, b"\0", b""),
    "bytes of a negative length": ("bytes", BYTES, b"\1", BAD),
    "bytes of the least length": ("bytes", BYTES, b"\xff" * 9 + b"\1", BAD),
    "bytes of the greatest length": ("bytes", BYTES, b"\xfe" + b"\xff" * 8 + b"\1", BAD),
    "bytes that are cut": ("bytes", BYTES, b"\6ab", BAD),
    "an empty string": ("string", TEXT, b"\0", ""),
    "a string of a negative length": ("string", TEXT, b"\1", BAD),
    "a string that is cut": ("string", TEXT, b"\6ab", BAD),
    "a zero in a string": ("string", TEXT, b"\6a\0b", "a\0b"),
    "a string of four bytes for a letter": ("string", TEXT, b"\10\xf0\x9f\x9a\xa2", "🚢"),
    "a string with half a letter": ("string", TEXT, b"\4a\xc3", BAD),
    "a string with a surrogate": ("string", TEXT, b"\6\xed\xa0\x80", BAD),
    "a string with an over-long letter": ("string", TEXT, b"\4\xc0\x80", BAD),
    "fixed": (MD5, BYTES, b"abc", b"abc"),
    "fixed that is cut": (MD5, BYTES, b"ab", BAD),
    "fixed of no byte": ({**MD5, "size": 0}, BYTES, b"", b""),
    "an enum, the first": (SUIT, TEXT, number(0), "CLUBS"),
    "an enum, beyond the last": (SUIT, TEXT, number(2), BAD),
    "an enum, far beyond": (SUIT, TEXT, number(5), BAD),
    "an enum, negative": (SUIT, TEXT, number(-1), BAD),
    "an enum of 33 bits": (SUIT, TEXT, number(2**32), BAD),
    "a union, the last": (["null", "int"], INT, number(1) + number(5), 5),
    "a union, beyond the last": (["null", "int"], INT, number(2), BAD),
    "a union, far beyond": (["null", "int"], INT, number(5), BAD),
    "a union, negative": (["null", "int"], INT, number(-1), BAD),
    "a union without its value": (["null", "int"], INT, number(1), BAD),
    "an empty array": (OF_INT, INTS, b"\0", []),
    "an array of one block": (OF_INT, INTS, b"\4\2\4\0", [1, 2]),
    "an array of two blocks": (OF_INT, INTS, b"\2\2\4\4\6\0", [1, 2, 3]),
    "an array of a block with its size": (OF_INT, INTS, b"\3\4\2\4\0", [1, 2]),
    "an array of both kinds of block": (OF_INT, INTS, b"\2\2\1\2\4\0", [1, 2]),
    "a size that is wrong": (OF_INT, INTS, b"\3\x7e\2\4\0", [1, 2]),
    "a negative size": (OF_INT, INTS, b"\3\1\2\4\0", [1, 2]),
    "an array with too few items": (OF_INT, INTS, b"\6\2\4", BAD),
    "an array without its end": (OF_INT, INTS, b"\4\2\4", BAD),
    "an array with the least count": (OF_INT, INTS, b"\xff" * 9 + b"\1\2", BAD),
    "an array with the greatest count": (OF_INT, INTS, b"\xfe" + b"\xff" * 8 + b"\1\2", BAD),
    "an array of text": (OF_TEXT, pa.list_(TEXT), b"\2\2a\0", ["a"]),
    "a bad item in an array": (OF_TEXT, pa.list_(TEXT), b"\4\2a\2\xff\0", BAD),
    "an array of nulls": ({"type": "array", "items": "null"}, pa.list_(INT), b"\4\0", UNFIT),
    "an empty map": (MAP, COUNTS, b"\0", []),
    "a map of two blocks": (MAP, COUNTS, b"\2\2a\2\2\2b\4\0", [("a", 1), ("b", 2)]),
    "a map of a block with its size": (MAP, COUNTS, b"\1\6\2a\2\0", [("a", 1)]),
    "a map with an empty key": (MAP, COUNTS, b"\2\0\2\0", [("", 1)]),
    "a map in which a key comes twice": (MAP, COUNTS, b"\4\2a\2\2a\4\0", BAD),
    "a key that comes in two blocks": (MAP, COUNTS, b"\2\2a\2\2\2a\4\0", BAD),
    "a key that is not UTF-8": (MAP, COUNTS, b"\2\2\xff\2\0", BAD),
    "a map without its end": (MAP, COUNTS, b"\2\2a\2", BAD),
    "a map with the least count": (MAP, COUNTS, b"\xff" * 9 + b"\1\2", BAD),
    "a byte behind the value": ("int", INT, number(1) + b"\0", BAD),
    "two values": ("int", INT, number(1) + number(1), BAD),
}


@pytest.mark.parametrize("case", WRITTEN.values(), ids=WRITTEN)
def test_a_value_as_it_is_written(case: tuple[Any, pa.DataType, bytes, object]) -> None:
    writer, kind, value, expected = case
    found = judged(record(("x", "int"), ("v", writer)), pa.struct([("v", kind)]), b"\0" + value)
    assert repr(found) == repr(expected if isinstance(expected, Refused) else (expected,))


def good(writer: Any) -> bytes:
    """The bytes of a value of the type, of the table."""
    taken = [each for each in WRITTEN.values() if not isinstance(each[3], Refused)]
    return next(value for each, _, value, _ in taken if each == writer)


@pytest.mark.parametrize(
    "case", [each for each in WRITTEN.values() if each[2] and each[3] != UNFIT], ids=str
)
def test_an_item_far_behind_in_an_array_is_judged_alike(
    case: tuple[Any, pa.DataType, bytes, object],
) -> None:
    """Few long arrays are read value by value."""
    writer, kind, value, expected = case
    schema = record(("v", {"type": "array", "items": writer}))
    items = number(100) + 99 * good(writer) + value + b"\0"
    found = judged(schema, pa.struct([("v", pa.list_(kind))]), items)
    if isinstance(expected, Refused):
        assert found == expected
    else:
        assert isinstance(found, tuple)
        assert repr(found[0][99:]) == repr([expected])
