"""Records of Avro become the rows that fastavro reads, and damaged ones spoil no other."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from rivermouth.formats.avro.decoder import Avro
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.avro import of_schema
from rivermouth.verification.formats.json_scalars import Settings as CheckerSettings
from rivermouth.verification.formats.reader import Undecodable
from rivermouth.verification.tables.ports import canonical
from tests.unit.formats.avro.generated import Dice, as_python, written
from tests.unit.formats.broken_records import damaged

pytestmark = pytest.mark.unit


def read(schema: Any, row: pa.StructType, values: list[bytes | None], **more: Any) -> Any:
    """What becomes of the values."""
    return Avro(row, Settings(**more), json.dumps(schema)).decode(pa.array(values, pa.binary()))


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_what_fastavro_reads(seed: int) -> None:
    sample = Dice(seed).sample(values=60)
    values: list[bytes | None] = [*sample.written]
    decoded = Avro(sample.row, Settings(), sample.text).decode(pa.array(values, pa.binary()))
    assert decoded.reasons.to_pylist() == [None] * len(values)
    decoded.rows.validate(full=True)
    assert as_python(decoded.rows) == [*sample.values]


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_record_is_bad_or_read_as_fastavro_does_and_no_neighbour_changes(
    seed: int,
) -> None:
    sample, dice = Dice(seed).sample(values=40), random.Random(seed)
    values = sample.written
    spoilt = [damaged(each, dice) if n % 2 else each for n, each in enumerate(values)]
    decoded = Avro(sample.row, Settings(), sample.text).decode(pa.array(spoilt, pa.binary()))
    decoded.rows.validate(full=True)
    rows, schema = as_python(decoded.rows), fastavro.parse_schema(sample.schema)
    for at, (value, row) in enumerate(zip(spoilt, rows, strict=True)):
        if value == values[at]:
            assert row == sample.values[at] or value == b""
        elif row is not None:
            assert repr(row) == repr(by_fastavro(schema, value))


def by_fastavro(schema: Any, value: bytes) -> Any:
    """What fastavro reads of the whole value."""
    given = io.BytesIO(value)
    found = fastavro.schemaless_reader(given, schema, None)
    assert given.read() == b"", "bytes are left"
    return found


def record(*fields: Any) -> dict[str, Any]:
    pairs = [{"name": name, "type": kind} for name, kind in fields]
    return {"type": "record", "name": "R", "fields": pairs}


def test_long_arrays_of_few_records_are_read_one_by_one() -> None:
    item = record(
        ("a", "string"), ("b", ["null", "long"]), ("c", {"type": "array", "items": "int"})
    )
    schema = record(("items", {"type": "array", "items": {**item, "name": "I"}}))
    kind = pa.struct([("a", pa.string()), ("b", pa.int64()), ("c", pa.list_(pa.int32()))])
    row = pa.struct([("items", pa.list_(kind))])
    value = {
        "items": [{"a": f"x{n}", "b": n if n % 2 else None, "c": [n] * (n % 3)} for n in range(900)]
    }
    whole = written(fastavro.parse_schema(schema), value)
    decoded = read(schema, row, [whole, whole[:-20], whole])
    assert as_python(decoded.rows) == [value, None, value]
    assert "ends within" in decoded.reasons[1].as_py()


COLUMNS = {
    ("int", pa.int64(), 7): 7,
    ("long", pa.int8(), 127): 127,
    ("long", pa.int8(), 128): "bad",
    ("long", pa.float64(), 2**53): float(2**53),
    ("long", pa.float64(), 2**53 + 1): "bad",
    ("int", pa.float32(), 2**24 + 1): "bad",
    ("long", pa.decimal128(38, 19), -(2**63)): -(2**63),
    ("long", pa.decimal128(4, 2), 99): 99,
    ("long", pa.decimal128(4, 2), 100): "bad",
    ("float", pa.float64(), 1.5): 1.5,
    ("string", pa.binary(), "é"): "é".encode(),
    ("bytes", pa.string(), b"x"): "x",
    ("bytes", pa.string(), b"\xff"): "bad",
}


@pytest.mark.parametrize(("case", "expected"), COLUMNS.items(), ids=str)
def test_a_column_takes_what_it_holds_exactly(case: Any, expected: object) -> None:
    writer, kind, value = case
    schema = record(("v", writer))
    decoded = read(
        schema, pa.struct([("v", kind)]), [written(fastavro.parse_schema(schema), {"v": value})]
    )
    assert (decoded.rows[0].as_py() or {"v": "bad"})["v"] == expected
    assert decoded.codes.to_pylist() == ["RM603" if expected == "bad" else None]


REFUSED = [
    ("string", pa.int64(), "v: BIGINT does not take string"),
    ("double", pa.float32(), "v: FLOAT does not take double"),
    ("long", pa.timestamp("us", "UTC"), "v: TIMESTAMP does not take long"),
    ({"type": "array", "items": "int"}, pa.int64(), "v: BIGINT does not take array"),
    (["null", "string"], pa.int64(), "v: BIGINT does not take string"),
]


NO_BYTES = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}
REFUSED += [
    ({"type": "array", "items": NO_BYTES}, pa.list_(pa.struct([("n", pa.int64())])), "no bytes"),
    (["null", "R"], pa.struct([("v", pa.int64())]), "holds itself"),
    ({"type": "array", "items": "R"}, pa.int64(), "holds itself"),
]


@pytest.mark.parametrize(("writer", "kind", "reason"), REFUSED, ids=str)
def test_a_schema_that_does_not_fit_makes_all_its_records_bad(
    writer: Any, kind: pa.DataType, reason: str
) -> None:
    decoded = read(record(("v", writer)), pa.struct([("v", kind)]), [b"\0", None, b"\2"])
    assert [reason in (each or reason) for each in decoded.reasons.to_pylist()] == [True] * 3
    assert decoded.codes.to_pylist() == ["RM613", None, "RM613"]
    with pytest.raises(Undecodable):
        of_schema(json.dumps(record(("v", writer))), {"v": kind}, CheckerSettings())


def test_a_schema_without_a_column_is_bad_unless_that_is_allowed() -> None:
    schema, row = record(("a", "int")), pa.struct([("b", pa.int32())])
    assert read(schema, row, [b"\2"]).codes.to_pylist() == ["RM610"]
    assert read(schema, row, [b"\2"], empty=True).rows.to_pylist() == [{"b": None}]


def test_what_nobody_wants_is_passed_by() -> None:
    inner = {**record(("x", "string"), ("y", {"type": "map", "values": "bytes"})), "name": "I"}
    schema = record(("a", inner), ("b", "long"), ("c", ["null", inner["name"], "int"]))
    value = {"a": {"x": "t", "y": {"k": b"v"}}, "b": 9, "c": 5}
    whole = written(fastavro.parse_schema(schema), value)
    assert read(schema, pa.struct([("b", pa.int64())]), [whole]).rows.to_pylist() == [{"b": 9}]


US = 1_580_702_706_123_456
ZONED = "io.debezium.time.ZonedTimestamp"
OF_DEBEZIUM: list[tuple[str, str, pa.DataType, Any, Any]] = [
    ("int", "io.debezium.time.Date", pa.date32(), 18_295, 18_295),
    ("int", "io.debezium.time.Date", pa.date32(), 2_932_897, None),
    ("long", "io.debezium.time.Timestamp", pa.timestamp("us"), US // 1000, US // 1000 * 1000),
    ("long", "io.debezium.time.MicroTimestamp", pa.timestamp("us"), US, US),
    ("long", "io.debezium.time.NanoTimestamp", pa.timestamp("us"), US * 1000, US),
    ("long", "io.debezium.time.NanoTimestamp", pa.timestamp("us"), US * 1000 + 1, None),
    ("long", "io.debezium.time.MicroTimestamp", pa.int64(), US, US),
    ("string", ZONED, pa.timestamp("us", "UTC"), "2020-02-03T05:05:06.123456+01:00", US),
    ("string", ZONED, pa.timestamp("us", "UTC"), "2020-02-03", None),
    ("string", ZONED, pa.timestamp("us", "UTC"), "1580702706", None),
    ("string", ZONED, pa.string(), "2020-02-03T04:05:06Z", "2020-02-03T04:05:06Z"),
]


@pytest.mark.parametrize(("writer", "name", "kind", "value", "expected"), OF_DEBEZIUM)
def test_what_connect_says_of_a_type_of_debezium_counts(
    writer: str, name: str, kind: pa.DataType, value: Any, expected: Any
) -> None:
    schema = record(("v", ["null", {"type": writer, "connect.version": 1, "connect.name": name}]))
    parsed = fastavro.parse_schema(schema)
    good, none = written(parsed, {"v": value}), written(parsed, {"v": None})

    decoded = read(schema, pa.struct([("v", kind)]), [none, good])

    assert rows_of(decoded.rows) == [(None,), None if expected is None else (expected,)]
    read_one = of_schema(json.dumps(schema), {"v": kind}, CheckerSettings())
    if expected is None:
        with pytest.raises(Undecodable):
            read_one(good)
    else:
        assert read_one(good) == (expected,)


@pytest.mark.parametrize("seed", range(40))
def test_the_checker_reads_the_same(seed: int) -> None:
    sample, dice = Dice(seed).sample(values=40), random.Random(seed)
    values = [damaged(e, dice) if n % 3 == 0 else e for n, e in enumerate(sample.written)]
    decoded = Avro(sample.row, Settings(), sample.text).decode(pa.array(values, pa.binary()))
    kinds = {each.name: each.type for each in sample.row}
    read_one = of_schema(sample.text, kinds, CheckerSettings())
    ours = rows_of(decoded.rows)
    for at, value in enumerate(values):
        try:
            expected: object = read_one(value) if value else None
        except Undecodable:
            expected = None
        assert repr(ours[at]) == repr(expected), decoded.reasons[at]


def rows_of(rows: pa.StructArray) -> list[tuple[Any, ...] | None]:
    """Canonical values (see ``verification.formats.reader``); None for a bad record."""
    columns = canonical(pa.RecordBatch.from_arrays(rows.flatten(), schema=pa.schema(rows.type)))
    values = zip(*(each.to_pylist() for each in columns.columns), strict=True)
    return [
        row if there else None
        for row, there in zip(values, rows.is_valid().to_pylist(), strict=True)
    ]
