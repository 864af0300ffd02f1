"""The forms of the records in a world: how values are written, and what the pipelines say of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]
"""The members of a record, in the order of the columns: whole numbers and texts."""


@dataclass(frozen=True)
class Form:
    """``put`` and ``delete`` write the value of a record that does so; without ``delete`` one
    without a value deletes. ``source`` is what a pipeline says of it, and ``schema`` the name of
    the file that these need, with the text for columns of these names.
    """

    put: Callable[[Values], bytes]
    delete: Callable[[Values], bytes] | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    schema: tuple[str, Callable[[Values], str]] | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


def _json(values: Values) -> bytes:
    return json.dumps(values).encode()


def _varint(number: int) -> bytes:
    """Seven bits in a byte, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def _avro(values: Values) -> bytes:
    """No number is negative here."""
    texts = ((each, str(each).encode()) for each in values.values())
    return b"".join(
        _varint(2 * each) if isinstance(each, int) else _varint(2 * len(text)) + text
        for each, text in texts
    )


def _avro_schema(values: Values) -> str:
    fields = [
        {"name": name, "type": "long" if isinstance(each, int) else "string"}
        for name, each in values.items()
    ]
    return json.dumps({"type": "record", "name": "Row", "fields": fields})


def _protobuf(values: Values) -> bytes:
    fields = ((8 * n, each, str(each).encode()) for n, each in enumerate(values.values(), 1))
    return b"".join(
        _varint(tag) + _varint(each)
        if isinstance(each, int)
        else _varint(tag + 2) + _varint(len(text)) + text
        for tag, each, text in fields
    )


def _protobuf_schema(values: Values) -> str:
    fields = " ".join(
        f"{'int64' if isinstance(each, int) else 'string'} {name} = {n};"
        for n, (name, each) in enumerate(values.items(), 1)
    )
    return f'syntax = "proto3"; message Row {{ {fields} }}'


def _event(op: str, values: Values, **row: Values | None) -> bytes:
    return _json({"op": op, **row, "source": {"seq": values["seq"]}})


def _written(values: Values) -> bytes:
    return _event("u" if values["seq"] % 2 else "c", values, before=None, after=_row(values))


def _deleted(values: Values) -> bytes:
    key = dict([*_row(values).items()][:1])
    return _event("d", values, before=key, after=None)


def _row(values: Values) -> Values:
    return {name: each for name, each in values.items() if name != "seq"}


JSON = "json"
FORMS: Mapping[str, Form] = {
    JSON: Form(_json),
    "avro": Form(_avro, source={"format": "avro"}, schema=("avsc", _avro_schema)),
    "protobuf": Form(
        _protobuf,
        source={"format": "protobuf", "message": "Row"},
        schema=("proto", _protobuf_schema),
    ),
    "debezium": Form(
        _written,
        _deleted,
        source={"envelope": "debezium"},
        columns={"seq": {"from": "$.source.seq"}},
    ),
}
OF_WORLDS = (
    {"events": JSON, "accounts": JSON},
    {"events": "avro", "accounts": "debezium"},
    {"events": "protobuf", "accounts": "avro"},
    {"events": JSON, "accounts": "debezium"},
)
"""The forms of each topic, world by world, again and again."""
