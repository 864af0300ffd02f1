"""One text of a schema and of those that it refers to."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from rivermouth.formats.avro import schema as avro
from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.protobuf.schema import Types
from rivermouth.formats.shredded.reading import Settings
from rivermouth.schemas.registry import Schema
from rivermouth.schemas.whole import text_of

pytestmark = pytest.mark.unit


def record(name: str, *fields: tuple[str, Any]) -> str:
    listed = [{"name": each, "type": kind} for each, kind in fields]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": listed})


CITY = Schema("AVRO", record("City", ("name", "string")), {})
ADDRESS = Schema("AVRO", record("Address", ("city", "City")), {"shop.City": CITY})


def test_a_schema_alone_stays_as_it_is() -> None:
    assert text_of(CITY) == CITY.text


def test_types_of_avro_are_defined_where_they_are_first_used() -> None:
    fields = [("to", "shop.Address"), ("from", ["null", "Address"]), ("home", "City")]
    order = Schema("AVRO", record("Order", *fields), {"shop.Address": ADDRESS})
    found = json.loads(text_of(order))
    assert found["fields"][0]["type"]["fields"][0]["type"]["name"] == "City"
    assert [each["type"] for each in found["fields"][1:]] == [["null", "Address"], "City"]
    assert isinstance(avro.parse(text_of(order)), avro.Record)


def test_types_inside_of_arrays_and_maps_are_found() -> None:
    fields = [
        ("all", {"type": "array", "items": "shop.City"}),
        ("by", {"type": "map", "values": "shop.City"}),
    ]
    order = Schema("AVRO", record("Order", *fields), {"shop.City": CITY})
    assert isinstance(avro.parse(text_of(order)), avro.Record)


def test_files_of_protobuf_import_each_other() -> None:
    head = 'syntax = "proto3"; package shop; '
    city = Schema("PROTOBUF", head + "message City { string name = 1; }", {})
    place = head + 'import "a/city.proto"; message Place { City city = 1; }'
    whole = head + 'import "place.proto"; message Order { Place to = 1; }'
    inner = Schema("PROTOBUF", place, {"a/city.proto": city})
    types = Types.from_json(text_of(Schema("PROTOBUF", whole, {"place.proto": inner})))
    assert set(types.messages) == {"shop.City", "shop.Place", "shop.Order"}
    assert types.top[0].name == "shop.Order"


def test_a_file_that_the_compiler_refuses_tells_why() -> None:
    found = text_of(Schema("PROTOBUF", "message {", {}))
    assert found.startswith("PROTOBUF: it.proto:1:9: Expected message name")
    how = Protobuf(pa.struct([("id", pa.int64())]), Settings(), schemas={1: found})
    reason = how.decode(pa.array([b"\0\0\0\0\1\0x"], pa.binary())).reasons[0].as_py()
    assert "Expected message name" in reason
