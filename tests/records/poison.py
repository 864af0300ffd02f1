"""Records that are bad, by what is wrong with them; ``poison.txt`` says what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.records.conftest import framed, record

NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
STATE = {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}
ORDER = record(
    ("id", "long"),
    ("city", "string"),
    ("amount", DECIMAL),
    ("at", MICROS),
    ("tags", {"type": "array", "items": "string"}),
    ("state", STATE),
    ("note", ["null", "string"]),
)
COLUMNS = {
    "avro": "id BIGINT, city STRING, amount DECIMAL(12,2), at TIMESTAMP, tags ARRAY<STRING>,"
    " state STRING, note STRING",
    "protobuf": "id BIGINT, city STRING, at TIMESTAMP, state STRING, tags ARRAY<STRING>,"
    " place STRUCT<city: STRING>, counts MAP<STRING, INT>, most BIGINT, sizes ARRAY<INT>",
    "json": "id BIGINT, city STRING, amount DECIMAL(12,2), at TIMESTAMP, tags ARRAY<STRING>,"
    " place STRUCT<zip: INT>, born DATE, open BOOLEAN, raw BINARY",
    "csv": "id BIGINT, city STRING, amount DECIMAL(12,2), born DATE, open BOOLEAN",
}
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum State { NEW = 0; PAID = 1; }
message Place { string city = 1; }
message Order {
  int64 id = 1;
  string city = 2;
  google.protobuf.Timestamp at = 3;
  State state = 4;
  repeated string tags = 5;
  Place place = 6;
  map<string, int32> counts = 7;
  uint64 most = 8;
  repeated sfixed32 sizes = 9;
}
"""
AVRO_SCHEMAS = {
    "order": ORDER,
    "id is text": record(("id", "string")),
    "id is a number with a fraction": record(("id", "double")),
    "other fields": record(("x", "long")),
    "nothing but nulls in a list": record(
        ("id", "long"), ("tags", {"type": "array", "items": "null"})
    ),
    "it contains itself": record(("id", "long"), ("next", ["null", "shop.Order"])),
    "times in nanoseconds": record(("id", "long"), ("at", NANOS)),
}
"""Schemas of writers. The topic has records of all of them."""


Poison = Mapping[str, bytes]
"""Bad records, by what is wrong with them."""


def _not_framed(body: bytes) -> Poison:
    return {
        "an empty value": b"",
        "one byte": b"\0",
        "four bytes": b"\0\0\0\0",
        "another first byte": b"\1\0\0\0\1" + body,
        "a document of JSON": b'{"id": 1}',
        "without the five bytes": body,
        "a schema that the registry does not have": framed(999_999, body),
    }


def of_avro(numbers: Mapping[str, int]) -> Poison:
    """``numbers`` are those of ``AVRO_SCHEMAS``."""
    number = numbers["order"]
    whole = b"\2\x08Rome\2\x07\0\0\0\0"
    at = {name: framed(each, b"") for name, each in numbers.items()}
    frame = at["order"]
    return {
        **_not_framed(whole),
        "nothing behind the five bytes": frame,
        "the last byte is cut": framed(number, whole[:-1]),
        "half of it is cut": framed(number, whole[:4]),
        "a byte more": framed(number, whole + b"\0"),
        "two in one": framed(number, whole + whole),
        "a number of eleven bytes": frame + b"\xff" * 10 + b"\1" + whole[1:],
        "a number beyond 64 bits": frame + b"\xff" * 9 + b"\2" + whole[1:],
        "a text with a negative length": frame + b"\2\1" + whole[2:],
        "a text that is longer than the record": frame + b"\2\x7fRome",
        "a text that is not UTF-8": frame + b"\2\x08R\xffme" + whole[6:],
        "a decimal without a byte": frame + b"\2\0\0" + whole[8:],
        "a decimal of more digits": frame + b"\2\0\x0c\x10" + bytes(5) + whole[8:],
        "a time after the year 9999": frame + b"\2\0\2\1\xfe" + b"\xff" * 8 + b"\1\0\0\0",
        "a list that is longer than the record": frame + b"\2\0\2\1\0\x7e\0",
        "a list of more values than there are": frame + b"\2\0\2\1\0\xfe\xff\x7f\0",
        "a list of 2^62 values": frame + b"\2\0\2\1\0" + b"\xfe" * 8 + b"\x7f\0\0\0",
        "a symbol that there is not": frame + b"\2\0\2\1\0\0\4\0",
        "a symbol with a negative number": frame + b"\2\0\2\1\0\0\1\0",
        "a branch that there is not": frame + b"\2\0\2\1\0\0\0\4",
        "a branch with a negative number": frame + b"\2\0\2\1\0\0\0\1",
        "the schema: id is text": at["id is text"] + b"\2x",
        "the schema: id has a fraction": at["id is a number with a fraction"] + bytes(8),
        "the schema: none of the columns": at["other fields"] + b"\2",
        "the schema: a list of values without a byte": at["nothing but nulls in a list"] + b"\2\0",
        "the schema: it contains itself": at["it contains itself"] + b"\2\0",
        "a part of a microsecond": at["times in nanoseconds"] + b"\2\2",
    }


def of_protobuf(number: int) -> Poison:
    """``number`` is that of ``PROTO``."""
    order = b"\2\2"  # the second message of the file
    whole = order + b"\x08\1\x12\4Rome"
    frame = framed(number, order)
    return {
        **_not_framed(whole),
        "no place of the message": framed(number, b""),
        "a place that is cut": framed(number, b"\4\2"),
        "a message that the file does not have": framed(number, b"\2\x08"),
        "a message inside of one that has none": framed(number, b"\4\2\2"),
        "a negative number of places": framed(number, b"\1" + whole[1:]),
        "the last byte is cut": framed(number, whole[:-1]),
        "a tag without its value": frame + b"\x08",
        "the field number 0": frame + b"\x00\1",
        "the wire type 6": frame + b"\x0e\1",
        "the wire type 7": frame + b"\x0f\1",
        "a tag of eleven bytes": frame + b"\xff" * 10 + b"\1",
        "a number of eleven bytes": frame + b"\x08" + b"\xff" * 10 + b"\1",
        "a length beyond the record": frame + b"\x12\x7fRome",
        "a negative length": frame + b"\x12" + b"\xff" * 9 + b"\1",
        "eight bytes that are cut, unknown": frame + b"\xa1\1\0\0\0",
        "four bytes that are cut, unknown": frame + b"\xa5\1\0",
        "a group without its end": frame + b"\xa3\1\x08\1",
        "the end of a group that has not begun": frame + b"\xa4\1",
        "a group that ends with another number": frame + b"\xa3\1\xac\1",
        "a text that is not UTF-8": frame + b"\x12\2\xc3\x28",
        "a text in a list that is not UTF-8": frame + b"\x2a\1\xff",
        "a message inside that is cut": frame + b"\x32\3\x0a\4R",
        "an entry of a map that is cut": frame + b"\x3a\2\x0a\4",
        "an enum without a name": frame + b"\x20\7",
        "a number beyond BIGINT": frame + b"\x40" + b"\xff" * 9 + b"\1",
        "a time after the year 9999": frame + b"\x1a\7\x08\xff\xff\xff\xff\xff\x1f",
        "a time of a billion nanoseconds": frame + b"\x1a\6\x10\x80\x94\xeb\xdc\3",
        "a part of a microsecond": frame + b"\x1a\2\x10\1",
        "packed values that are not whole": frame + b"\x4a\3\0\0\0",
    }


def _changed(**values: object) -> bytes:
    return json.dumps({"id": 1, "city": "Rome", **values}).encode()


def of_json() -> Poison:
    """By the rules of docs/json.md, without a leniency."""
    return {
        "an empty value": b"",
        "a word": b"hello",
        "half a document": b'{"id": 1, "ci',
        "a list": b"[1]",
        "a number": b"17",
        "null": b"null",
        "two documents": b'{"id": 1}{"id": 2}',
        "a comma too many": b'{"id": 1,}',
        "single quotes": b"{'id': 1}",
        "a name without quotes": b"{id: 1}",
        "a comment": b'{"id": 1 /* one */}',
        "NaN": b'{"id": NaN}',
        "a number with a leading zero": b'{"id": 007}',
        "a number with a plus": b'{"id": +7}',
        "a byte that is not UTF-8": b'{"id": 1, "city": "R\xffme"}',
        "a control character in a text": b'{"id": 1, "city": "Ro\nme"}',
        "an escape that there is not": b'{"id": 1, "city": "R\\ome"}',
        "half of a pair of surrogates": b'{"id": 1, "city": "\\ud83d"}',
        "five bytes ahead": framed(7, b'{"id": 1}'),
        "500 lists in each other": b'{"id": 1, "x": ' + b"[" * 501 + b"]" * 501 + b"}",
        "none of the fields": b'{"order": 1}',
        "a number as text": _changed(id="1"),
        "a fraction for BIGINT": _changed(id=1.5),
        "a number beyond BIGINT": _changed(id=2**63),
        "true for a number": _changed(id=True),
        "a number for text": _changed(city=5),
        "an object for text": _changed(city={"name": "Rome"}),
        "a decimal with a digit too many behind the point": _changed(amount=1.005),
        "a decimal with a digit too many ahead of it": _changed(amount=10**10),
        "the 30th of February": _changed(born="2026-02-30"),
        "a date with a time": _changed(born="2026-02-03T00:00:00Z"),
        "a time that is a number": _changed(at=1_767_225_600),
        "a time at 25 o'clock": _changed(at="2026-01-01T25:00:00Z"),
        "0 for a BOOLEAN": _changed(open=0),
        "text that is not base64": _changed(raw="a-b"),
        "a text for a list": _changed(tags="a,b"),
        "a number in a list of texts": _changed(tags=["a", 5]),
        "a list for a struct": _changed(place=[1]),
        "a number beyond INT inside of a struct": _changed(place={"zip": 2**31}),
    }


def of_csv() -> Poison:
    """Of ``id,city,amount,born,open``."""
    return {
        "an empty value": b"",
        "only a line end": b"\n",
        "fields that are missing": b"1,Rome",
        "a field too many": b"1,Rome,1.50,2026-01-01,true,x",
        "a comma at the end": b"1,Rome,1.50,2026-01-01,true,",
        "two lines": b"1,Rome,,,\n2,Bern,,,\n",
        "a quote that is not closed": b'1,"Rome,,,',
        "text behind a quote": b'1,"Rome"x,,,',
        "a quote in the middle": b'1,Ro"me,,,',
        "semicolons": b"1;Rome;1.50;2026-01-01;true",
        "tabs": b"1\tRome\t1.50\t2026-01-01\ttrue",
        "a document of JSON": b'{"id": 1, "city": "Rome"}',
        "five bytes ahead": framed(7, b"1,Rome,,,"),
        "the mark of UTF-8 at the front": b"\xef\xbb\xbf1,Rome,,,",
        "a byte that is not UTF-8": b"1,R\xffme,,,",
        "the names of the columns": b"id,city,amount,born,open",
        "a word for a number": b"one,Rome,,,",
        "an empty text for a number": b'"",Rome,,,',
        "a number with a space": b" 1,Rome,,,",
        "a number with a plus": b"+1,Rome,,,",
        "a number with a leading zero": b"007,Rome,,,",
        "a number with a comma": b'"1,000",Rome,,,',
        "a hexadecimal number": b"0x1F,Rome,,,",
        "a fraction for BIGINT": b"1.5,Rome,,,",
        "a number beyond BIGINT": b"9223372036854775808,Rome,,,",
        "NaN": b"NaN,Rome,,,",
        "null as a word": b"null,Rome,,,",
        "a decimal with a digit too many behind the point": b"1,Rome,1.005,,",
        "a decimal with a digit too many ahead of it": b"1,Rome,10000000000,,",
        "the 30th of February": b"1,Rome,,2026-02-30,",
        "a date with a time": b"1,Rome,,2026-01-01T00:00:00Z,",
        "a date as it is written in Germany": b"1,Rome,,31.12.2026,",
        "yes for a BOOLEAN": b"1,Rome,,,yes",
        "TRUE for a BOOLEAN": b"1,Rome,,,TRUE",
    }
