"""What Avro's specification (1.12) says of schemas: names, and logical types that are ignored."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.formats.avro.judged import judged, judged_by, number, record
from tests.unit.formats.judged import BAD, UNFIT, Refused

pytestmark = pytest.mark.unit

INT, LONG, TEXT, BYTES = pa.int32(), pa.int64(), pa.string(), pa.binary()
TIME, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
X = record(("n", "int"), name="a.X")
OTHER_X = record(("n", "string"), name="b.X")
OF_X = pa.struct([("n", INT)])


def enum(name: str, *symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": [*symbols], **more}


def fixed(size: object, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def said(kind: str, logical: object, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


INSIDE = record(("f", fixed(1)), ("g", "F"), name="t.I")
NAMED: dict[str, tuple[Any, pa.DataType, bytes, object]] = {
    "a type by its full name": (record(("x", X), ("v", "a.X")), OF_X, b"\2\4", {"n": 2}),
    "a type by a name in its namespace": (
        record(("x", fixed(1)), ("v", "F"), name="R", namespace="s"),
        BYTES,
        b"ab",
        b"b",
    ),
    "a namespace in the name": (
        record(("x", fixed(1)), ("v", "s.F"), name="s.R"),
        BYTES,
        b"ab",
        b"b",
    ),
    "the namespace of a record inside": (
        record(("x", INSIDE), ("v", "t.F"), name="s.R"),
        BYTES,
        b"abc",
        b"c",
    ),
    "a namespace beside a name with dots": (
        record(("x", fixed(1)), ("v", "s.F"), name="s.R", namespace="other"),
        BYTES,
        b"ab",
        b"b",
    ),
    "no namespace, said so": (
        record(("x", fixed(1, namespace="")), ("v", "F"), name="s.R"),
        BYTES,
        b"ab",
        b"b",
    ),
    "no namespace, null": (
        record(("x", fixed(1, namespace=None)), ("v", "F"), name="s.R"),
        BYTES,
        b"ab",
        b"b",
    ),
    "one name in two namespaces, the first": (
        record(("x", X), ("y", OTHER_X), ("v", "a.X")),
        OF_X,
        b"\2\2a\4",
        {"n": 2},
    ),
    "one name in two namespaces, the second": (
        record(("x", X), ("y", OTHER_X), ("v", "b.X")),
        pa.struct([("n", TEXT)]),
        b"\2\2a\2b",
        {"n": "b"},
    ),
    "a name as the type of another": (
        record(("x", X), ("v", {"type": "a.X"})),
        OF_X,
        b"\2\4",
        {"n": 2},
    ),
    "a type in a type": (record(("v", {"type": {"type": "int"}})), INT, b"\4", 2),
    "a type that is called int in a namespace": (
        record(("x", enum("s.int", "A", "B")), ("v", "int")),
        INT,
        b"\0\4",
        2,
    ),
    "a type that is called array": (
        record(("x", enum("array", "A")), ("v", {"type": "array", "items": "int"})),
        pa.list_(INT),
        b"\0\2\4\0",
        [2],
    ),
    "a record that is called record": (record(("v", "int"), name="record"), INT, b"\4", 2),
    "a record of an error": ({**record(("v", "int")), "type": "error"}, INT, b"\4", 2),
    "doc, order, aliases and words of others": (
        record(("v", {"type": "int", "x": [1]}), doc="d", aliases=["Q"], order="ignore"),
        INT,
        b"\4",
        2,
    ),
    "aliases that are no list": (record(("v", "int"), aliases=None), INT, b"\4", 2),
    "a symbol with a space": (record(("v", enum("E", "a b"))), TEXT, b"\0", "a b"),
    "two branches of one type": (record(("v", ["int", "int"])), INT, b"\2\4", 2),
    "null as an object": (record(("v", [{"type": "null"}, "int"])), INT, b"\0", None),
    "null as an object, and no branch fits": (
        record(("v", [{"type": "null"}, "string"])),
        INT,
        b"\0",
        UNFIT,
    ),
    "a default that is none of its type": (
        {"type": "record", "name": "R", "fields": [{"name": "v", "type": "int", "default": "x"}]},
        INT,
        b"\4",
        2,
    ),
    "a name that comes later": (record(("v", "a.X"), ("x", X)), OF_X, b"\2\4", UNFIT),
    "a name that there is not": (record(("v", "Nothing")), INT, b"\4", UNFIT),
    "a name in another namespace": (record(("x", X), ("v", "X")), OF_X, b"\2\4", UNFIT),
    "a name that comes twice": (record(("x", X), ("v", X)), OF_X, b"\2\4", UNFIT),
    "a name that comes twice, as two types": (
        record(("x", fixed(1, "E")), ("v", enum("E", "A"))),
        TEXT,
        b"a\0",
        UNFIT,
    ),
    "a field that comes twice": (record(("v", "int"), ("v", "int")), INT, b"\2\4", UNFIT),
    "a symbol that comes twice": (record(("v", enum("E", "A", "A"))), TEXT, b"\0", UNFIT),
    "a default that is no symbol": (record(("v", enum("E", "A", default="B"))), TEXT, b"\0", UNFIT),
    "symbols that are text": (record(("v", {**enum("E"), "symbols": "AB"})), TEXT, b"\0", UNFIT),
    "symbols that are numbers": (record(("v", {**enum("E"), "symbols": [1]})), TEXT, b"\0", UNFIT),
    "symbols that are null": (record(("v", {**enum("E"), "symbols": None})), TEXT, b"\0", UNFIT),
    "a union in a union": (record(("v", ["null", ["int"]])), INT, b"\2\0\4", UNFIT),
    "fixed of a negative size": (record(("v", fixed(-1))), BYTES, b"a", UNFIT),
    "fixed of a size that is text": (record(("v", fixed("1"))), BYTES, b"a", UNFIT),
    "fixed of a size that is true": (record(("v", fixed(True))), BYTES, b"a", UNFIT),
    "fixed of a size beyond all": (record(("v", fixed(2**70))), BYTES, b"a", UNFIT),
    "a record without fields": ({"type": "record", "name": "R"}, INT, b"\4", UNFIT),
    "fields that are text": ({**record(), "fields": "abc"}, INT, b"\4", UNFIT),
    "fields that are null": ({**record(), "fields": None}, INT, b"\4", UNFIT),
    "a field without a type": ({**record(), "fields": [{"name": "v"}]}, INT, b"\4", UNFIT),
    "a field without a name": ({**record(), "fields": [{"type": "int"}]}, INT, b"\4", UNFIT),
    "a name that is a number": (
        {**record(), "fields": [{"name": 5, "type": "int"}]},
        INT,
        b"\4",
        UNFIT,
    ),
    "a name that is a list": (record(("v", "int"), name=["R"]), INT, b"\4", UNFIT),
    "a namespace that is a number": (record(("v", "int"), namespace=5), INT, b"\4", UNFIT),
    "an array without items": (record(("v", {"type": "array"})), pa.list_(INT), b"\0", UNFIT),
    "a type that is a number": (record(("v", {"type": 5})), INT, b"\4", UNFIT),
    "a type that is null": (record(("v", {"type": None})), INT, b"\4", UNFIT),
    "a schema of JSON, not of Avro": ({"type": "object", "properties": {}}, INT, b"\4", UNFIT),
}


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)
def test_names_and_parts(case: tuple[Any, pa.DataType, bytes, object]) -> None:
    schema, kind, value, expected = case
    found = judged(schema, pa.struct([("v", kind)]), value)
    assert found == (expected if isinstance(expected, Refused) else (expected,))


TEXTS = {
    "no JSON": "{",
    "the word alone": "int",
    "lists without end": '{"type": "array", "items": ' * 100_000,
    "a list in a list, many times": json.dumps(record(("v", "int"), ("x", "LIST"))).replace(
        '"LIST"', '{"type": "array", "items": ' * 5_000 + '"int"' + "}" * 5_000
    ),
    "a record in a record, by names": json.dumps(
        record(
            *(
                (f"x{n}", record(("v", f"R{n - 1}" if n else "int"), name=f"R{n}"))
                for n in range(5_000)
            ),
            ("v", "R4999"),
        )
    ),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_no_schema_is_refused(text: str) -> None:
    assert judged_by(text, pa.struct([("v", INT)]), b"\4\0") == UNFIT


DIGITS = pa.decimal128(38, 2)
DAY = pa.date32()
UUID = bytes(range(16))
LOGICAL: dict[str, tuple[Any, pa.DataType, bytes, object]] = {
    "a decimal": (
        said("bytes", "decimal", precision=4, scale=2),
        DIGITS,
        b"\4\1\0",
        Decimal("2.56"),
    ),
    "a decimal without a scale": (
        said("bytes", "decimal", precision=4),
        DIGITS,
        b"\2\xff",
        Decimal("-1.00"),
    ),
    "a decimal of fixed": (
        fixed(2, logicalType="decimal", precision=4, scale=2),
        DIGITS,
        b"\1\0",
        Decimal("2.56"),
    ),
    "a decimal of fixed, of all its digits": (
        fixed(8, logicalType="decimal", precision=18),
        DIGITS,
        b"\0" * 8,
        Decimal("0.00"),
    ),
    "of fixed, a digit too many": (
        fixed(8, logicalType="decimal", precision=19),
        DIGITS,
        b"\0" * 8,
        UNFIT,
    ),
    "of fixed without a byte": (fixed(0, logicalType="decimal", precision=1), DIGITS, b"", UNFIT),
    "of fixed with many digits": (
        fixed(129, logicalType="decimal", precision=310),
        DIGITS,
        b"\0" * 129,
        Decimal("0.00"),
    ),
    "of fixed with too many digits": (
        fixed(129, logicalType="decimal", precision=311),
        DIGITS,
        b"\0" * 129,
        UNFIT,
    ),
    "of fixed that is large": (
        fixed(2**30, logicalType="decimal", precision=5),
        DIGITS,
        b"\0",
        BAD,
    ),
    "a decimal without a precision": (said("bytes", "decimal"), DIGITS, b"\2\1", UNFIT),
    "a precision of a half": (said("bytes", "decimal", precision=2.5), DIGITS, b"\2\1", UNFIT),
    "a precision that is text": (said("bytes", "decimal", precision="4"), DIGITS, b"\2\1", UNFIT),
    "a precision of 0": (said("bytes", "decimal", precision=0), DIGITS, b"\2\1", UNFIT),
    "a negative precision": (said("bytes", "decimal", precision=-2), DIGITS, b"\2\1", UNFIT),
    "a negative scale": (said("bytes", "decimal", precision=2, scale=-2), DIGITS, b"\2\1", UNFIT),
    "a scale beyond the precision": (
        said("bytes", "decimal", precision=2, scale=3),
        DIGITS,
        b"\2\1",
        UNFIT,
    ),
    "a decimal that is ignored is bytes": (
        said("bytes", "decimal", precision=2, scale=3),
        TEXT,
        b"\2a",
        "a",
    ),
    "a decimal for BINARY": (said("bytes", "decimal", precision=4), BYTES, b"\2a", b"a"),
    "a decimal for STRING": (said("bytes", "decimal", precision=4), TEXT, b"\2a", UNFIT),
    "a decimal without a byte": (said("bytes", "decimal", precision=4), DIGITS, b"\0", BAD),
    "a decimal of double is a double": (
        said("double", "decimal", precision=4),
        pa.float64(),
        b"\0" * 8,
        0.0,
    ),
    "a decimal with bytes too many": (
        said("bytes", "decimal", precision=4),
        DIGITS,
        number(20) + b"\0" * 19 + b"\1",
        Decimal("1.00"),
    ),
    "more digits than its precision": (
        said("bytes", "decimal", precision=2),
        DIGITS,
        b"\4\1\0",
        Decimal("256.00"),
    ),
    "digits that the column does not have": (
        said("bytes", "decimal", precision=4, scale=3),
        DIGITS,
        b"\2\1",
        BAD,
    ),
    "a precision beyond 38": (
        said("bytes", "decimal", precision=50),
        DIGITS,
        b"\2\1",
        Decimal("1.00"),
    ),
    "a number of 39 digits": (
        said("bytes", "decimal", precision=40, scale=2),
        pa.decimal128(38, 0),
        number(17) + (10**39).to_bytes(17, "big"),
        BAD,
    ),
    "a scale beyond 38": (said("bytes", "decimal", precision=50, scale=40), DIGITS, b"\2\0", UNFIT),
    "a date": (said("int", "date"), DAY, number(-1), -1),
    "a date before the year 1": (said("int", "date"), DAY, number(-719_163), BAD),
    "a date of long is a long": (said("long", "date"), LONG, b"\2", 1),
    "a date of long is no date": (said("long", "date"), DAY, b"\2", UNFIT),
    "a time of day is a number": (said("int", "time-millis"), INT, b"\2", 1),
    "a time of day is no time": (said("long", "time-micros"), TIME, b"\2", UNFIT),
    **{
        f"{place}timestamp-{unit}": (
            said("long", f"{place}timestamp-{unit}"),
            kind,
            number(2000),
            us,
        )
        for place, kind in (("", TIME), ("local-", LOCAL))
        for unit, us in (("millis", 2_000_000), ("micros", 2000), ("nanos", 2))
    },
    "a part of a microsecond": (said("long", "timestamp-nanos"), TIME, number(2001), BAD),
    "a time of int is no time": (said("int", "timestamp-millis"), TIME, b"\2", UNFIT),
    "a time of int is an int": (said("int", "timestamp-millis"), INT, b"\2", 1),
    "a local time for TIMESTAMP": (said("long", "local-timestamp-micros"), TIME, b"\2", UNFIT),
    "a time for TIMESTAMP_NTZ": (said("long", "timestamp-micros"), LOCAL, b"\2", UNFIT),
    "a name that is not known": (said("long", "timestamp-micro"), TIME, b"\2", UNFIT),
    "a name that is not known is ignored": (said("string", "address"), TEXT, b"\2a", "a"),
    "a name that is a number": (said("long", 5), LONG, b"\2", 1),
    "a name that is null": (said("long", None), LONG, b"\2", 1),
    "a name that is a list": (said("long", ["date"]), LONG, b"\2", 1),
    "a word of our own is no logical type": (
        said("string", "zoned-timestamp"),
        TIME,
        b"\x282020-01-01T00:00:00Z",
        UNFIT,
    ),
    "a uuid is its text": (said("string", "uuid"), TEXT, b"\4no", "no"),
    "a uuid of bytes": (
        fixed(16, logicalType="uuid"),
        TEXT,
        UUID,
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
    ),
    "a uuid of twelve bytes": (fixed(12, logicalType="uuid"), TEXT, UUID[:12], UNFIT),
    "a uuid of int is an int": (said("int", "uuid"), INT, b"\2", 1),
    "a duration is bytes": (fixed(12, logicalType="duration"), BYTES, UUID[:12], UUID[:12]),
    "a logical type around a type": (
        {"type": said("int", "date"), "logicalType": "x"},
        DAY,
        b"\2",
        1,
    ),
}


@pytest.mark.parametrize("case", LOGICAL.values(), ids=LOGICAL)
def test_logical_types(case: tuple[Any, pa.DataType, bytes, object]) -> None:
    writer, kind, value, expected = case
    found = judged(record(("v", writer), ("x", "int")), pa.struct([("v", kind)]), value + b"\0")
    assert found == (expected if isinstance(expected, Refused) else (expected,))


@pytest.mark.parametrize("logical", ["timestamp-micro", 5, None, ["date"], "date", "uuid"], ids=str)
def test_what_is_ignored_leaves_a_plain_number_that_may_be_a_time(logical: object) -> None:
    schema = record(("v", said("long", logical)))
    assert judged(schema, pa.struct([("v", TIME)]), number(3), unit="ms") == (3000,)
