"""The benchmark's records in Avro and Protobuf: the values of the same records in JSON."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from rivermouth.config.columns import parse_columns
from rivermouth.formats.arrow import InArrow
from rivermouth.formats.avro.decoder import Avro
from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.protobuf.files import text_of
from rivermouth.formats.shredded.reading import row_of, settings_of
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings
from rivermouth.warehouse.delta.actions import schema_of

Spoil = Callable[[bytes], bytes]


def instead(value: bytes, new: bytes) -> bytes:
    """The record of JSON with another value of its first field, a BIGINT."""
    return value[: value.index(b":") + 1] + new + value[value.index(b",") :]


SPOILT: Sequence[Spoil] = (
    lambda value: value[: len(value) // 2],
    lambda value: value[: 2 * len(value) // 3] + b"}",
    lambda value: value.replace(b'"', b"'"),
    lambda value: instead(value, b'"x"'),
    lambda value: instead(value, b"1.5"),
    lambda value: instead(value, b"1" + b"0" * 25),
    lambda value: value[:-1] + b"," + value[1 : value.index(b",")] + b"}",
    lambda value: b"x" + value,
    lambda value: value + b"}",
    lambda value: value + value,
    lambda value: value.replace(b"-", b"\xff", 1),
    lambda value: value.replace(b"T", b"", 1),
)
"""What makes a record of JSON bad: it is cut, or not JSON, or has another type, a fraction, too
many digits, a name twice, something around the object, bytes that are not UTF-8, a time that is
none.
"""
BINARY: Sequence[Spoil] = (
    lambda value: value[: len(value) // 2],
    lambda value: value[:-1],
    lambda value: b"\xff" * 11 + value,
    lambda value: value.replace(b"e", b"\xff"),
    lambda value: b"",
)
"""The same of the others: it is cut, has a number that is too long, text that is not UTF-8, or
nothing.
"""


@dataclass(frozen=True)
class Form:
    """How the records of one shape are written, and who reads them, as the columns ``ddl``.

    ``encode`` makes them from those of JSON. ``ours`` decodes chunks. ``spark`` makes a column of
    the rows from ``value``; ``record`` reads one record, as a library does. None: there is none.
    """

    ddl: str
    encode: Callable[[bytes], bytes]
    ours: InArrow
    spoilt: Sequence[Spoil]
    spark: Callable[[], Column] | None
    record: Callable[[bytes], object] | None


def json_form(ddl: str) -> Form:
    """Objects of JSON, read by ``from_json``."""
    ours = StrictJson.of(parse_columns(ddl), JsonSettings())
    spark = partial(F.from_json, F.col("value").cast("string"), ddl)
    return Form(ddl, bytes, ours, SPOILT, spark, None)


def avro_form(ddl: str) -> Form:
    """Records of Avro, bare, read by ``from_avro`` and by fastavro."""
    columns = ((each.name, each.type) for each in parse_columns(ddl))
    schema = _avro(schema_of(columns), "Row")
    parsed, text = fastavro.parse_schema(schema), json.dumps(schema)

    def encode(value: bytes) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, _typed(json.loads(value), schema))
        return out.getvalue()

    ours = Avro(row_of(parse_columns(ddl)), settings_of({}), text)
    spark = partial(from_avro, F.col("value"), text, {"mode": "PERMISSIVE"})

    def record(value: bytes) -> object:
        return fastavro.schemaless_reader(io.BytesIO(value), parsed, None)

    return Form(ddl, encode, ours, BINARY, spark, record)


def protobuf_form(ddl: str) -> Form:
    """Messages of Protobuf, bare, read by its own parser: each field of each message is asked for.

    Decimals are whole numbers of the least unit.
    """
    whole = ddl.replace("DECIMAL(12,2)", "BIGINT")
    shape = schema_of((each.name, each.type) for each in parse_columns(whole))
    messages: list[str] = []
    _message(shape, "Row", messages)
    source = "\n".join(
        ['syntax = "proto3";', 'import "google/protobuf/timestamp.proto";', *messages]
    )
    with tempfile.TemporaryDirectory() as folder:
        described = _described(Path(folder), source)
        kind, text = _kind(described), text_of(described)
    ours = Protobuf(row_of(parse_columns(whole)), settings_of({}), text, "Row")

    def encode(value: bytes) -> bytes:
        message = kind()
        _fill(message, json.loads(value, parse_float=Decimal), shape)
        return bytes(message.SerializeToString())

    def record(value: bytes) -> object:
        return _told(kind.FromString(value), shape)

    return Form(whole, encode, ours, BINARY, None, record)


FORMS: Mapping[str, Callable[[str], Form]] = {
    "json": json_form,
    "avro": avro_form,
    "protobuf": protobuf_form,
}
"""For columns, as SQL."""


_PLAIN = {"long": "long", "integer": "int", "string": "string", "boolean": "boolean"}
_LOGICAL = {"timestamp": {"type": "long", "logicalType": "timestamp-micros"}, "double": "double"}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
_NUMBERS = {"long": "int64", "integer": "int32", "boolean": "bool"}


def _avro(kind: Any, name: str) -> Any:
    """A type of Delta as one of Avro."""
    if isinstance(kind, str):
        return _DECIMAL if kind.startswith("decimal") else _PLAIN.get(kind) or _LOGICAL[kind]
    if kind["type"] == "array":
        return {"type": "array", "items": _avro(kind["elementType"], f"{name}_")}
    fields = [
        {"name": each["name"], "type": _avro(each["type"], f"{name}_{each['name']}")}
        for each in kind["fields"]
    ]
    return {"type": "record", "name": name, "fields": fields}


def _typed(value: Any, kind: Any) -> Any:
    """A value of JSON as fastavro takes it."""
    if not isinstance(kind, dict):
        return value
    if kind["type"] == "record":
        return {e["name"]: _typed(value[e["name"]], e["type"]) for e in kind["fields"]}
    if kind["type"] == "array":
        return [_typed(each, kind["items"]) for each in value]
    if kind["logicalType"] == "decimal":
        return round(Decimal(str(value)), 2)
    return datetime.fromisoformat(value.replace(".5Z", ".500+00:00").replace("Z", "+00:00"))


def _message(kind: Any, name: str, messages: list[str]) -> None:
    """Messages of Protobuf for a struct of Delta."""
    lines = []
    for number, each in enumerate(kind["fields"], 1):
        inner, repeated = each["type"], ""
        if isinstance(inner, dict) and inner["type"] == "array":
            inner, repeated = inner["elementType"], "repeated "
        said = _NUMBERS.get(inner, inner) if isinstance(inner, str) else f"{name}_{each['name']}"
        if said == "timestamp":
            said = "google.protobuf.Timestamp"
        elif isinstance(inner, dict):
            _message(inner, said, messages)
        lines.append(f"  {repeated}{said} {each['name']} = {number};")
    messages.append("\n".join([f"message {name} {{", *lines, "}"]))


def _described(folder: Path, source: str) -> Path:
    """The file with the descriptors of a text."""
    described = folder / "row.descriptors"
    (folder / "row.proto").write_text(source, encoding="utf-8")
    known = resources.files("grpc_tools") / "_proto"
    words = [f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={described}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words, "row.proto"], check=True)
    return described


def _kind(described: Path) -> Any:
    """The class of the messages."""
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Row"))


def _fill(message: Any, value: Mapping[str, Any], kind: Any) -> None:
    for each in kind["fields"]:
        name, inner, given = each["name"], each["type"], value[each["name"]]
        if isinstance(inner, str):
            if inner == "timestamp":
                getattr(message, name).FromJsonString(given)
            elif isinstance(given, Decimal) and inner == "long":
                setattr(message, name, int(given * 100))
            else:
                setattr(message, name, float(given) if isinstance(given, Decimal) else given)
        elif inner["type"] == "struct":
            _fill(getattr(message, name), given, inner)
        elif isinstance(inner["elementType"], str):
            getattr(message, name).extend(given)
        else:
            for one in given:
                _fill(getattr(message, name).add(), one, inner["elementType"])


def _told(message: Any, kind: Any) -> tuple[Any, ...]:
    """All values of a message."""
    found: list[Any] = []
    for each in kind["fields"]:
        value, inner = getattr(message, each["name"]), each["type"]
        if isinstance(inner, str):
            found.append(value.seconds if inner == "timestamp" else value)
        elif inner["type"] == "struct":
            found.append(_told(value, inner))
        elif isinstance(inner["elementType"], str):
            found.append([*value])
        else:
            found.append([_told(one, inner["elementType"]) for one in value])
    return tuple(found)


def records(
    make: Callable[[int, random.Random], bytes], form: Form, count: int, share: int
) -> list[bytes]:
    """So many records, of which ``share`` in a hundred are bad."""
    dice, bad = random.Random(7), random.Random(8)
    made = (form.encode(make(number, dice)) for number in range(count))
    return [bad.choice(form.spoilt)(v) if bad.random() * 100 < share else v for v in made]
