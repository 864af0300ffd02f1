"""Records of Protobuf become the rows that its own parser reads."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError

from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.protobuf import reader
from rivermouth.verification.formats.reader import Reader, Undecodable
from tests.unit.formats.avro.test_decoder import rows_of
from tests.unit.formats.broken_records import damaged
from tests.unit.formats.protobuf.compiled import Compiled

pytestmark = pytest.mark.unit

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Status { NEW = 0; PAID = 1; SENT = 7; }
message Address { string city = 1; int32 zip = 2; repeated string lines = 3; }
message Order {
  int64 id = 1;
  string customer = 2;
  optional string note = 3;
  google.protobuf.Timestamp at = 4;
  sint32 delta = 5;
  repeated string tags = 6;
  Status status = 7;
  Address address = 8;
  double weight = 9;
  bool open = 10;
  repeated sint64 numbers = 11;
  map<string, int64> counts = 12;
  oneof pay { string card = 13; int64 cash = 14; Address cheque = 20; }
  repeated Address all = 15;
  google.protobuf.Int64Value maybe = 16;
  fixed32 large = 17;
  bytes raw = 18;
  uint64 most = 19;
  repeated fixed64 wide = 21;
}
"""
ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.int32()), ("lines", pa.list_(pa.string()))])
ROW = pa.struct(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("note", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("delta", pa.int32()),
        ("tags", pa.list_(pa.string())),
        ("status", pa.string()),
        ("address", ADDRESS),
        ("weight", pa.float64()),
        ("open", pa.bool_()),
        ("numbers", pa.list_(pa.int64())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("card", pa.string()),
        ("cash", pa.int64()),
        ("cheque", ADDRESS),
        ("all", pa.list_(ADDRESS)),
        ("maybe", pa.int64()),
        ("large", pa.int64()),
        ("raw", pa.binary()),
        ("most", pa.decimal128(20, 0)),
        ("wide", pa.list_(pa.int64())),
        ("nowhere", pa.string()),
    ]
)


@pytest.fixture(scope="module")
def shop() -> Compiled:
    return Compiled(SHOP)


def decoded(shop: Compiled, values: list[bytes | None], row: pa.StructType = ROW) -> Any:
    how = Protobuf(row, Settings(), shop.types.to_json(), "shop.Order")
    found = how.decode(pa.array(values, pa.binary()))
    found.rows.validate(full=True)
    return found


def random_order(shop: Compiled, dice: random.Random) -> Any:
    """An order with some of its fields."""
    order = shop.message("shop.Order")()

    def address(into: Any) -> object:
        into.city, into.zip = f"c{dice.randrange(9)}", dice.randint(-(2**31), 2**31 - 1)
        into.lines.extend("ü" * n for n in range(dice.randrange(3)))
        return into

    def at() -> None:
        order.at.seconds, order.at.nanos = dice.randrange(2**31), dice.randrange(10**6) * 1_000

    setters: list[Callable[[], object]] = [
        lambda: setattr(order, "id", dice.randint(-(2**63), 2**63 - 1)),
        lambda: setattr(order, "customer", "é" * dice.randrange(90)),
        lambda: setattr(order, "note", "" if dice.random() < 0.5 else "note"),
        at,
        lambda: setattr(order, "delta", dice.randint(-(2**31), 2**31 - 1)),
        lambda: order.tags.extend(f"t{n}" for n in range(dice.randrange(5))),
        lambda: setattr(order, "status", dice.choice((0, 1, 7))),
        lambda: address(order.address),
        lambda: setattr(order, "weight", dice.random()),
        lambda: setattr(order, "open", True),
        lambda: order.numbers.extend(dice.randint(-(2**63), 2**63 - 1) for _ in range(3)),
        lambda: order.counts.update({f"k{dice.randrange(4)}": dice.randrange(2**40)}),
        lambda: setattr(order, "card", "4000"),
        lambda: setattr(order, "cash", dice.randrange(5)),
        lambda: address(order.cheque),
        lambda: [address(order.all.add()) for _ in range(dice.randrange(4))],
        lambda: setattr(order.maybe, "value", dice.randrange(3)),
        lambda: setattr(order, "large", dice.randrange(2**32)),
        lambda: setattr(order, "raw", dice.randbytes(dice.randrange(9))),
        lambda: setattr(order, "most", dice.randrange(2**64)),
        lambda: order.wide.extend(dice.randrange(2**62) for _ in range(2)),
    ]
    for each in dice.sample(setters, dice.randint(0, len(setters))):
        each()
    return order


def expected(order: Any) -> dict[str, Any]:
    """The row of an order, as the parser of the language has it."""

    def there(name: str, value: Any) -> Any:
        return value if order.HasField(name) else None

    def address(of: Any) -> dict[str, Any]:
        return {"city": of.city, "zip": of.zip, "lines": [*of.lines]}

    at = None
    if order.HasField("at"):
        at = order.at.seconds * 10**6 + order.at.nanos // 1_000
    plain = ("id", "customer", "delta", "weight", "open", "large", "raw")
    return {
        **{name: getattr(order, name) for name in plain},
        "note": there("note", order.note),
        "at": at,
        "tags": [*order.tags],
        "status": {0: "NEW", 1: "PAID", 7: "SENT"}[order.status],
        "address": there("address", address(order.address)),
        "numbers": [*order.numbers],
        "counts": dict(order.counts),
        "card": there("card", order.card),
        "cash": there("cash", order.cash),
        "cheque": there("cheque", address(order.cheque)),
        "all": [address(each) for each in order.all],
        "maybe": there("maybe", order.maybe.value),
        "most": Decimal(order.most),
        "wide": [*order.wide],
        "nowhere": None,
    }


def as_python(rows: pa.StructArray) -> list[Any]:
    found = rows.to_pylist()
    at = pa.compute.cast(rows.field("at"), pa.int64()).to_pylist()
    for row, us in zip(found, at, strict=True):
        if row is not None:
            row["at"], row["counts"] = us, dict(row["counts"])
    return list(found)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_what_the_parser_reads(shop: Compiled, seed: int) -> None:
    dice = random.Random(seed)
    orders = [random_order(shop, dice) for _ in range(60)]
    found = decoded(shop, [each.SerializeToString() or None for each in orders])
    there = [each for each in orders if each.SerializeToString()]
    assert found.codes.null_count == len(orders)
    assert [each for each in as_python(found.rows) if each] == [*map(expected, there)]


@pytest.mark.parametrize("seed", range(30))
def test_parts_of_two_messages_are_as_if_they_were_merged(shop: Compiled, seed: int) -> None:
    dice = random.Random(seed)
    pairs = [(random_order(shop, dice), random_order(shop, dice)) for _ in range(30)]
    values = [a.SerializeToString() + b.SerializeToString() for a, b in pairs]
    merged = [shop.message("shop.Order").FromString(each) for each in values]
    found = decoded(shop, [each or None for each in values])
    there = [each for each, value in zip(merged, values, strict=True) if value]
    assert [each for each in as_python(found.rows) if each] == [*map(expected, there)]


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_record_is_bad_or_read_as_the_parser_does(shop: Compiled, seed: int) -> None:
    dice = random.Random(seed)
    good = [random_order(shop, dice).SerializeToString() for _ in range(60)]
    values = [damaged(each, dice) if n % 2 else each for n, each in enumerate(good)]
    rows = as_python(decoded(shop, [each or None for each in values]).rows)
    for value, row in zip(values, rows, strict=True):
        if row is None:
            continue
        order = shop.message("shop.Order").FromString(value)
        assert repr(row) == repr({name: expected(order)[name] for name in row})


@pytest.mark.short(("records",), {(100,)})
@pytest.mark.parametrize("records", [100, 600])
def test_what_is_good_for_the_parser_is_good(shop: Compiled, records: int) -> None:
    """Where each field is wanted, and so each text is looked at."""
    dice, refused = random.Random(5), 0
    for _ in range(records):
        value = damaged(random_order(shop, dice).SerializeToString(), dice)
        found = decoded(shop, [value or None])
        try:
            order = shop.message("shop.Order").FromString(value)
        except DecodeError:
            assert not found.rows[0].is_valid
            refused += 1
        else:
            reason = found.reasons[0].as_py() or ""
            known = ("microsecond", "years 0001", "nanos", "symbol")
            sound = found.rows[0].is_valid or any(each in reason for each in known)
            assert not value or sound, f"{reason}: {value!r} {order}"
    assert refused > 50


def test_long_messages_of_few_records_are_read_one_by_one(shop: Compiled) -> None:
    order = shop.message("shop.Order")(tags=[f"t{n}" for n in range(900)], id=5)
    whole = order.SerializeToString()
    found = decoded(shop, [whole, whole[:-3], whole])
    rows = as_python(found.rows)
    assert (rows[0], rows[1]) == (rows[2], None)
    assert rows[0] == expected(order)


def test_a_fault_behind_the_first_of_many_values_of_few_records_is_found(shop: Compiled) -> None:
    """Read from its second value on it would be another record, and a good one."""
    spoilt = bytes.fromhex("d9e3caed08726efd65b042d9c3ed2f")
    many = b"".join(bytes([8 * n & 0x7F | 0x80, 8 * n >> 7, 0]) for n in range(22, 90))
    assert decoded(shop, [spoilt, many]).codes.to_pylist() == ["RM603", None]


PROTO2 = """
syntax = "proto2";
package shop;
enum Status { NEW = 1; PAID = 2; }
message Line { required int32 n = 1; optional string sku = 2; optional Status status = 3; }
message Order {
  optional int64 id = 1;
  repeated Line lines = 2;
  optional Status status = 3;
  repeated Status history = 4;
  oneof pay { Line card = 5; Status other = 6; string note = 7; }
  map<int32, Line> by_number = 8;
  repeated int32 packed = 9 [packed = true];
}
"""
LINE = pa.struct([("n", pa.int64()), ("sku", pa.string()), ("status", pa.string())])
WHOLE = pa.struct(
    [
        ("id", pa.int64()),
        ("lines", pa.list_(LINE)),
        ("status", pa.string()),
        ("history", pa.list_(pa.string())),
        ("card", LINE),
        ("note", pa.string()),
        ("by_number", pa.map_(pa.string(), pa.struct([("sku", pa.string())]))),
        ("packed", pa.list_(pa.int32())),
    ]
)
SOME = pa.struct([("id", pa.int64()), ("note", pa.string())])


def random_second(compiled: Compiled, dice: random.Random) -> Any:
    order = compiled.message("shop.Order")()

    def line(into: Any) -> object:
        into.n = dice.randrange(-9, 9)
        if dice.random() < 0.5:
            into.sku, into.status = "ü" * dice.randrange(4), dice.choice((1, 2))
        return into

    setters: list[Callable[[], object]] = [
        lambda: setattr(order, "id", dice.randrange(2**40)),
        lambda: [line(order.lines.add()) for _ in range(dice.randrange(3))],
        lambda: setattr(order, "status", 2),
        lambda: order.history.extend(dice.choice((1, 2)) for _ in range(3)),
        lambda: line(order.card),
        lambda: setattr(order, "other", 1),
        lambda: setattr(order, "note", "é"),
        lambda: line(order.by_number[dice.randrange(3)]),
        lambda: order.packed.extend(dice.randrange(-(2**31), 2**31) for _ in range(3)),
    ]
    for each in dice.sample(setters, dice.randint(0, len(setters))):
        each()
    return order


def judged(read: Reader, value: bytes) -> object:
    try:
        return read(value) if value else None
    except Undecodable:
        return None


@pytest.mark.parametrize("row", [ROW, WHOLE, SOME], ids=["proto3", "proto2", "some fields"])
@pytest.mark.parametrize("seed", range(20))
def test_the_checker_reads_the_same(shop: Compiled, row: pa.StructType, seed: int) -> None:
    dice = random.Random(seed)
    compiled, make = (shop, random_order) if row is ROW else (Compiled(PROTO2), random_second)
    good = [make(compiled, dice).SerializeToString() for _ in range(80)]
    values = [damaged(each, dice) if n % 2 else each for n, each in enumerate(good)]
    values += [a + b for a, b in pairwise(good)]
    found = decoded(compiled, [each or None for each in values], row)
    settings = {"schema_file": compiled.types.to_json(), "message": "shop.Order"}
    read = reader(pa.schema(list(row)), [each.name for each in row], settings)
    for value, ours, why in zip(values, rows_of(found.rows), found.reasons, strict=True):
        assert repr(ours) == repr(judged(read, value)), (why, value.hex())


def test_the_checker_finds_the_message_that_the_path_names(shop: Compiled) -> None:
    row = pa.struct([("id", pa.int64()), ("city", pa.string())])
    settings = {"schema_file": shop.types.to_json(), "framing": "confluent"}
    read = reader(pa.schema(list(row)), ["id", "city"], settings)
    order = shop.message("shop.Order")(id=5).SerializeToString()
    address = shop.message("shop.Address")(city="B").SerializeToString()
    assert read(b"\2\2" + order) == (5, None)
    assert read(b"\0" + address) == (None, "B")
    for path in (b"", b"\1", b"\2\3", b"\2\x08", b"\4\0\0", b"\2\xff"):
        with pytest.raises(Undecodable):
            read(path + order)


def test_an_empty_entry_of_a_map_moves_no_other_one() -> None:
    source = """
    syntax = "proto2";
    message M { map<string, E> m = 1; optional int32 id = 2; }
    enum E { A = 0; B = 1; C = 2; }
    """
    compiled = Compiled(source)
    row = pa.struct([("m", pa.map_(pa.string(), pa.string())), ("id", pa.int32())])
    decoder = Protobuf(row, Settings(), compiled.types.to_json(), "M")
    values = [b"\x0a\x04\x0a\x00\x10\x01\x10\x02", b"\x0a\x00\x10\x06"]

    found = decoder.decode(pa.array(values))

    assert found.rows.to_pylist() == [{"m": [("", "B")], "id": 2}, {"m": [("", "A")], "id": 6}]
