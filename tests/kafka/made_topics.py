"""Topics of many shapes, drawn from a seed: JSON, Avro, Protobuf, events of Debezium.

A record is good where a person would take it; a few are bad.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from tests.records.conftest import Registering, avro, framed, record
from tests.unit.formats.protobuf.compiled import Compiled

RECORDS = 150
_BAD = (b"{oops", b"\xff\xfe\x01\x02", b"", b"[1, 2]")
_EPOCH = datetime(2026, 1, 1, tzinfo=timezone.utc)
_WORDS = ("open", "paid", "Zürich", "a, b", "", "ok", "{x}")


@dataclass(frozen=True)
class Made:
    """The keys and values of a topic, and which values are good."""

    records: tuple[tuple[bytes | None, bytes | None], ...]
    bad: frozenset[bytes]

    @property
    def good(self) -> int:
        values = (value for _, value in self.records)
        return sum(value is not None and value not in self.bad for value in values)


Value = Callable[[random.Random, int], Any]


def _moment(dice: random.Random) -> datetime:
    return _EPOCH + timedelta(microseconds=dice.randrange(10**13))


def _text_time(dice: random.Random, n: int) -> str:
    return _moment(dice).isoformat().replace("+00:00", "Z")


_JSON: dict[str, Value] = {
    "order_id": lambda dice, n: n,
    "customer": lambda dice, n: str(uuid.UUID(int=dice.getrandbits(128))),
    "price": lambda dice, n: round(dice.uniform(0, 99), dice.choice((0, 1, 2))),
    "quantity": lambda dice, n: dice.randrange(9),
    "amount": lambda dice, n: f"{dice.uniform(0, 99):.2f}",
    "status": lambda dice, n: dice.choice(_WORDS),
    "paid": lambda dice, n: dice.random() < 0.5,
    "note": lambda dice, n: dice.choice((None, "by hand")),
    "never": lambda dice, n: None,
    "created_at": lambda dice, n: int(_moment(dice).timestamp() * 1000),
    "expires": lambda dice, n: int(_moment(dice).timestamp()),
    "updated": _text_time,
    "local_time": lambda dice, n: _moment(dice).strftime("%Y-%m-%dT%H:%M:%S"),
    "nanos": lambda dice, n: f"2026-01-01T00:00:00.{dice.randrange(10**9):09d}+02:00",
    "day": lambda dice, n: str(_moment(dice).date()),
    "big": lambda dice, n: (1 << 63) + dice.getrandbits(62),
    "mixed": lambda dice, n: dice.choice((1, "1", 2.5, True)),
    "address": lambda dice, n: {"city": dice.choice(_WORDS), "geo": {"lat": dice.uniform(-90, 90)}},
    "lines": lambda dice, n: [{"sku": f"s{k}", "n": k} for k in range(dice.randrange(4))],
    "tags": lambda dice, n: [dice.choice(_WORDS) for _ in range(dice.randrange(3))],
    "labels": lambda dice, n: {f"k{dice.randrange(60)}": "v" for _ in range(3)},
    "Ship To": lambda dice, n: "home",
    "unit.price": lambda dice, n: dice.uniform(0, 9),
    "empty": lambda dice, n: {},
    "nested odd": lambda dice, n: {"a b": 1},
}


def made_json(seed: int) -> Made:
    """JSON with some of these fields; some of them are not in each record."""
    dice = random.Random(f"json {seed}")
    names = dice.sample([*_JSON], dice.randrange(4, 14))
    often = {name: dice.choice((1, 1, 0.7)) for name in names}
    names.append("order_id")
    found, bad = [], set[bytes]()
    for n in range(RECORDS):
        row = {each: _JSON[each](dice, n) for each in names if dice.random() <= often.get(each, 1)}
        value = json.dumps(row, ensure_ascii=dice.random() < 0.5).encode()
        if n % 50 == 13:
            value = dice.choice(_BAD)
            bad.add(value)
        key = {0: None, 1: str(n).encode(), 2: json.dumps({"order_id": n}).encode()}[seed % 3]
        found.append((key, value if n % 60 != 59 else None))
    return Made(tuple(found), frozenset(bad))


_AVRO: dict[str, tuple[Any, Value]] = {
    "small": ("int", lambda dice, n: n),
    "ratio": ("double", lambda dice, n: dice.random()),
    "part": ("float", lambda dice, n: 0.5),
    "flag": ("boolean", lambda dice, n: dice.random() < 0.5),
    "blob": ("bytes", lambda dice, n: dice.randbytes(5)),
    "maybe": (["null", "string"], lambda dice, n: dice.choice((None, "x"))),
    "at": (
        {"type": "long", "logicalType": "timestamp-millis"},
        lambda dice, n: _moment(dice).replace(microsecond=0),
    ),
    "day": ({"type": "int", "logicalType": "date"}, lambda dice, n: _moment(dice).date()),
    "colour": (
        {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]},
        lambda dice, n: dice.choice(("RED", "BLUE")),
    ),
    "items": ({"type": "array", "items": "long"}, lambda dice, n: [n] * dice.randrange(3)),
    "props": ({"type": "map", "values": "string"}, lambda dice, n: {"a": "b"}),
    "place": (
        {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]},
        lambda dice, n: {"city": "Rome"},
    ),
}


def made_avro(seed: int, topic: str, registering: Registering) -> Made:
    """Framed Avro, of one schema or of two; the subject is that of the topic."""
    dice = random.Random(f"avro {seed}")
    names = dice.sample([*_AVRO], dice.randrange(2, 9))
    fields = [("order_id", "long"), *((name, _AVRO[name][0]) for name in names)]
    schemas = [record(*fields[:-1]), record(*fields)][seed % 2 :]
    numbers = [registering.avro(f"{topic}-value", each) for each in schemas]
    writers = [avro(each) for each in schemas]
    found, bad = [], set[bytes]()
    for n in range(RECORDS):
        of = n * len(schemas) // RECORDS
        row = {"order_id": n, **{name: _AVRO[name][1](dice, n) for name in names}}
        value = framed(numbers[of], writers[of](row))
        if n % 50 == 13:
            value = value[:-1] if dice.random() < 0.5 else b"junk"
            bad.add(value)
        found.append((str(n).encode(), value))
    return Made(tuple(found), frozenset(bad))


_PROTOBUF: dict[str, tuple[str, Value]] = {
    "name": ("string", lambda dice, n: dice.choice(_WORDS)),
    "count": ("int32", lambda dice, n: n),
    "size": ("uint64", lambda dice, n: dice.getrandbits(64)),
    "ratio": ("double", lambda dice, n: dice.random()),
    "flag": ("bool", lambda dice, n: dice.random() < 0.5),
    "blob": ("bytes", lambda dice, n: dice.randbytes(4)),
    "items": ("repeated int64", lambda dice, n: [n] * dice.randrange(3)),
    "maybe": ("optional string", lambda dice, n: "x"),
    "colour": ("Colour", lambda dice, n: dice.randrange(2)),
}


def made_protobuf(seed: int, topic: str, registering: Registering) -> Made:
    """Framed Protobuf; of each third topic the message is the second one of its file."""
    dice = random.Random(f"protobuf {seed}")
    names = dice.sample([*_PROTOBUF], dice.randrange(2, 8))
    inner = "".join(f" {_PROTOBUF[name][0]} {name} = {n};" for n, name in enumerate(names, 2))
    order = f"message Order {{ int64 order_id = 1;{inner} }}\n"
    other = "message Other { string text = 1; }\n"
    second = seed % 3 == 0
    text = 'syntax = "proto3";\npackage shop;\nenum Colour { RED = 0; BLUE = 1; }\n'
    text += other + order if second else order + other
    number = registering.protobuf(f"{topic}-value", text)
    message, path = Compiled(text).message("shop.Order"), b"\x02\x02" if second else b"\0"
    found, bad = [], set[bytes]()
    for n in range(RECORDS):
        row = {"order_id": n, **{name: _PROTOBUF[name][1](dice, n) for name in names}}
        value = framed(number, path + message(**row).SerializeToString())
        if n % 50 == 13:
            value = b"junk"
            bad.add(value)
        found.append((str(n).encode(), value))
    return Made(tuple(found), frozenset(bad))


_ROWS: dict[str, tuple[dict[str, Any], Value]] = {
    "name": ({"type": "string"}, lambda dice, n: dice.choice(_WORDS)),
    "stock": ({"type": "int32"}, lambda dice, n: dice.randrange(9)),
    "weight": ({"type": "double"}, lambda dice, n: dice.random()),
    "active": ({"type": "boolean"}, lambda dice, n: dice.random() < 0.5),
    "seen": (
        {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        lambda dice, n: int(_moment(dice).timestamp() * 1e6),
    ),
    "changed": ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, _text_time),
    "born": (
        {"type": "int32", "name": "io.debezium.time.Date"},
        lambda dice, n: dice.randrange(9000, 20000),
    ),
    "balance": (
        {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2", "connect.decimal.precision": "12"},
        },
        lambda dice, n: base64.b64encode(dice.randrange(9999).to_bytes(3, "big")).decode(),
    ),
    "long_text": ({"type": "string"}, lambda dice, n: "y" * 20),
}
_SOURCES: tuple[dict[str, Any], ...] = (
    {"connector": "postgresql", "lsn": 0},
    {"connector": "mysql", "file": "bin.1", "pos": 0, "row": 0},
    {"connector": "mongodb"},
)


def made_events(seed: int) -> Made:
    """Events of Debezium with their keys, bare or wrapped, of several connectors."""
    dice = random.Random(f"events {seed}")
    names = dice.sample([*_ROWS], dice.randrange(2, 8))
    kinds = {"id": {"type": "int64"}, **{name: _ROWS[name][0] for name in names}}
    fields = [{"field": name, "optional": True, **kind} for name, kind in kinds.items()]
    row_schema = {"type": "struct", "fields": fields, "field": "after"}
    schema = {"type": "struct", "fields": [{**row_schema, "field": "before"}, row_schema]}
    wrapped = seed % 2 == 0

    def written(payload: Any) -> bytes:
        whole = {"schema": schema, "payload": payload} if wrapped else payload
        return json.dumps(whole).encode()

    found: list[tuple[bytes | None, bytes | None]] = []
    bad = set[bytes]()
    for n in range(RECORDS):
        number = dice.randrange(40)
        row = {"id": number, **{name: _ROWS[name][1](dice, n) for name in names}}
        op = dice.choice("ccruuud")
        if op == "u" and "long_text" in row and dice.random() < 0.3:
            row["long_text"] = "__debezium_unavailable_value"
        source = {**_SOURCES[seed % 3], "ts_ms": n}
        source |= {each: n for each in ("lsn", "pos") if each in source}
        before = {**dict.fromkeys(row), "id": number} if op == "d" else None
        event = {"op": op, "before": before, "after": None if op == "d" else row, "source": source}
        value = written(event)
        if n % 50 == 13:
            value = b"{oops"
            bad.add(value)
        key = written({"id": number})
        found += [(key, value), *([(key, None)] if op == "d" else [])]
    return Made(tuple(found), frozenset(bad))
