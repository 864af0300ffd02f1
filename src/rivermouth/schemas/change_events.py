"""Events of Debezium among JSON samples: their rows, the types that the source has, their order."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rivermouth.config.envelope import DEBEZIUM, PRESETS
from rivermouth.schemas.inferred import Field, Inferred, infer, quoted
from rivermouth.schemas.recognized import NEARLY_ALL
from rivermouth.schemas.seen import Seen

_EVENT = PRESETS[DEBEZIUM]
_WORDS = {*_EVENT.put_when, *_EVENT.delete_when, *_EVENT.skip_when, *_EVENT.truncate_when}
_NAMES = ("after", "before")
ORDERS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "postgresql": (("lsn", "BIGINT", "lsn"),),
    "mysql": (("file", "STRING", "file"), ("pos", "BIGINT", "pos"), ("row_at", "INT", "row")),
    "sqlserver": (
        ("commit_lsn", "STRING", "commit_lsn"),
        ("change_lsn", "STRING", "change_lsn"),
        ("event_at", "BIGINT", "event_serial_no"),
    ),
    "oracle": (("scn", "DECIMAL(38,0)", "scn"),),
}
"""By the connector: the columns that put events in order, and their fields in ``source``. As
docs/cdc.md tells them.
"""
_NAMED: Mapping[str, tuple[str, str]] = {
    "io.debezium.time.Date": ("DATE", ""),
    "org.apache.kafka.connect.data.Date": ("DATE", ""),
    "io.debezium.time.Timestamp": ("TIMESTAMP_NTZ", "ms"),
    "org.apache.kafka.connect.data.Timestamp": ("TIMESTAMP_NTZ", "ms"),
    "io.debezium.time.MicroTimestamp": ("TIMESTAMP_NTZ", "us"),
    "io.debezium.time.NanoTimestamp": ("TIMESTAMP_NTZ", "ns"),
    "io.debezium.time.IsoDate": ("DATE", "zoned"),
    "io.debezium.time.IsoTimestamp": ("TIMESTAMP_NTZ", "zoned"),
    "io.debezium.time.ZonedTimestamp": ("TIMESTAMP", ""),
}
_TYPES = {
    **dict.fromkeys(("int8", "int16", "int32"), "INT"),
    "int64": "BIGINT",
    **dict.fromkeys(("float", "double"), "DOUBLE"),
    "boolean": "BOOLEAN",
    "string": "STRING",
    "bytes": "BINARY",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


@dataclass(frozen=True)
class Events:
    """The events of a topic. ``told``: records tell the types of the source."""

    inferred: Inferred
    order: tuple[Field, ...]
    told: bool


def events_of(documents: Sequence[object]) -> Events | None:
    """The columns of the rows of Debezium's events; None: the documents are no such events."""
    members = [each for each in map(_members, documents) if _is_event(_inside(each))]
    if not members or len(members) < NEARLY_ALL * len(documents):
        return None
    payloads = [_inside(each) for each in members]
    told = _told(members)
    cut = any(each.wire == "ns" for each in told)
    inferred = Inferred(told, cut=cut) if told else _from_rows(payloads)
    source = _members(payloads[-1]["source"])
    names = (each.name for each in inferred.fields)
    return Events(inferred, order_by(str(source.get("connector")), source, names), bool(told))


def names_of(document: object) -> tuple[str, ...]:
    """The fields of a message key, with or without a wrapper; none: it has none."""
    return tuple(_inside(_members(document)))


def _members(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, tuple) else {}


def _inside(members: Mapping[str, object]) -> dict[str, object]:
    wrapped = set(members) == {"schema", "payload"}
    return _members(members["payload"]) if wrapped else dict(members)


def _is_event(members: Mapping[str, object]) -> bool:
    of_a_row = any(isinstance(members.get(each), tuple) for each in _NAMES)
    known = members.get("op") in _WORDS
    return known and (of_a_row or members["op"] in ("m", "t")) and "source" in members


def _from_rows(payloads: Iterable[Mapping[str, object]]) -> Inferred:
    """The columns by the values of the rows: a value that is not told tells nothing."""
    rows = Seen()
    for payload in payloads:
        for name in _NAMES:
            row = payload.get(name)
            if isinstance(row, tuple):
                pairs = ((n, None if v == _EVENT.unavailable else v) for n, v in row)
                rows.add(tuple(pairs))
    return infer(rows, events=True)


def order_by(connector: str, told: Container[str], columns: Iterable[str]) -> tuple[Field, ...]:
    """The columns that put the events of a connector in order, beside those of the row.

    None, where ``source`` does not have all fields, of which ``told`` are there, or where the row
    has a column of such a name.
    """
    order = ORDERS.get(connector.replace("mariadb", "mysql"), ())
    taken = {each.lower() for each in columns}
    if any(field not in told or name in taken for name, _, field in order):
        return ()
    return tuple(Field(name, kind, (f"$.source.{field}",)) for name, kind, field in order)


def _told(members: Sequence[Mapping[str, object]]) -> tuple[Field, ...]:
    """The columns by the schemas that records bring along; of a name the newest one counts."""
    found = dict[str, Field]()
    for each in members:
        schema = _members(each.get("schema"))
        parts = [_members(part) for part in _list(schema.get("fields"))]
        for row in (part for part in parts if part.get("field") in _NAMES):
            for field in map(_members, _list(row.get("fields"))):
                made = _field(field)
                found[made.name] = made
    return tuple(found.values())


def _field(schema: Mapping[str, object]) -> Field:
    name, known = str(schema["field"]), str(schema.get("name", ""))
    if known == _DECIMAL:
        its = _members(schema.get("parameters"))
        precision = min(38, int(str(its.get("connect.decimal.precision", 38))))
        return Field(name, f"DECIMAL({precision},{int(str(its.get('scale', 0)))})")
    if known in _NAMED:
        kind, wire = _NAMED[known]
        return Field(name, kind, (), wire)
    return Field(name, _type(schema))


def _type(schema: Mapping[str, object]) -> str:
    """Of a value inside of others the type as JSON writes it."""
    kind = str(schema["type"])
    if kind == "struct":
        fields = map(_members, _list(schema.get("fields")))
        inner = (f"{quoted(str(each['field']))}: {_type(each)}" for each in fields)
        return f"STRUCT<{', '.join(inner)}>"
    if kind == "array":
        return f"ARRAY<{_type(_members(schema['items']))}>"
    if kind == "map":
        return f"MAP<STRING, {_type(_members(schema['values']))}>"
    return _TYPES[kind]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
