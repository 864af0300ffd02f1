"""The columns that hold what a schema says, of Avro and Protobuf: the decoders take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config.columns import parse_columns
from rivermouth.formats.avro import schema as avro
from rivermouth.formats.avro.decoder import Avro
from rivermouth.formats.protobuf import schema as protobuf
from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.protobuf.files import text_of
from rivermouth.formats.shredded.reading import row_of, settings_of
from rivermouth.warehouse.delta.actions import in_sql

pytestmark = pytest.mark.unit

INNER = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
AVRO: list[tuple[Any, str | None]] = [
    ("boolean", "boolean"),
    ("int", "int"),
    ("long", "bigint"),
    ("float", "float"),
    ("double", "double"),
    ("string", "string"),
    ("bytes", "binary"),
    ("null", None),
    (["null", "long"], "bigint"),
    (["long", "null"], "bigint"),
    (["int", "long"], "bigint"),
    (["null", "int", "float"], "double"),
    (["null", "float", "double"], "double"),
    ({"type": "int", "logicalType": "date"}, "date"),
    ({"type": "int", "logicalType": "time-millis"}, "int"),
    ({"type": "long", "logicalType": "timestamp-nanos"}, "timestamp"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
    ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, "timestamp"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9,2)"),
    ({"type": "fixed", "name": "F", "size": 3}, "binary"),
    ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, "string"),
    ({"type": "enum", "name": "E", "symbols": ["a"]}, "string"),
    ({"type": "array", "items": "int"}, "array<int>"),
    ({"type": "map", "values": ["null", "int"]}, "map<string,int>"),
    (INNER, "struct<n:int>"),
    ({"type": "array", "items": ["null", INNER]}, "array<struct<n:int>>"),
]
REFUSED: list[tuple[Any, str]] = [
    (["int", "string"], "x is a union of types that share no column"),
    ({"type": "array", "items": ["int", "string"]}, "x[] is a union"),
    (["long", "double"], "x is a union of types that share no column"),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2},
        "x has 39 digits, a DECIMAL at most 38",
    ),
    ({"type": "array", "items": "R0"}, "holds itself"),
]
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message M {
  int32 a = 1; sint64 b = 2; uint32 c = 3; fixed64 d = 4; bool e = 5; float f = 6; double g = 7;
  string h = 8; bytes i = 9; Kind j = 10; Inner k = 11; repeated int32 l = 12;
  map<int32, Inner> m = 13; google.protobuf.Timestamp n = 14;
  google.protobuf.Int64Value o = 15; oneof p { string q = 16; int32 r = 17; } Nothing s = 18;
}
message Inner { optional int32 x = 1; }
message Nothing {}
message Loop { repeated Loop next = 1; }
enum Kind { A = 0; }
"""
EXPECTED = (
    "a:int,b:bigint,c:bigint,d:decimal(20,0),e:boolean,f:float,g:double,h:string,i:binary,j:string,"
    "k:struct<x:int>,l:array<int>,m:map<string,struct<x:int>>,n:timestamp,o:bigint,q:string,r:int"
)


def a_record(type_: Any) -> str:
    fields = [{"name": "x", "type": type_}, {"name": "y", "type": "int"}]
    return json.dumps({"type": "record", "name": "R0", "fields": fields})


def ddl_of(kind: Any) -> str:
    return ", ".join(f"{each['name']} {in_sql(each['type'])}" for each in kind["fields"])


@pytest.mark.parametrize(("type_", "expected"), AVRO)
def test_a_type_of_avro_has_a_column_that_its_decoder_fills(type_: Any, expected: Any) -> None:
    text = a_record(type_)
    found = avro.columns_of(text)
    kinds = {each["name"]: in_sql(each["type"]) for each in found["fields"]}
    assert kinds == ({} if expected is None else {"x": expected}) | {"y": "int"}
    assert Avro(row_of(parse_columns(ddl_of(found))), settings_of({}), text).unfit(text) == ""


@pytest.mark.parametrize(("type_", "why"), REFUSED)
def test_what_no_column_holds_is_said(type_: Any, why: str) -> None:
    with pytest.raises(avro.BadSchema) as caught:
        avro.columns_of(a_record(type_))
    assert why in str(caught.value)


def test_a_message_of_protobuf_has_columns_that_its_decoder_fills(tmp_path: Path) -> None:
    file = tmp_path / "m.proto"
    file.write_text(PROTO)
    text = text_of(file)
    found = protobuf.columns_of(text)
    assert in_sql(found) == f"struct<{EXPECTED}>"
    decoder = Protobuf(row_of(parse_columns(ddl_of(found))), settings_of({}), text, "M")
    assert decoder.unfit(text) == ""
    assert in_sql(protobuf.columns_of(text, "Inner")) == "struct<x:int>"
    for name, why in (("Loop", "holds itself"), ("Gone", "no message")):
        with pytest.raises(protobuf.BadSchema, match=why):
            protobuf.columns_of(text, name)
