"""Protobuf by its own parser, which is told only of the fields that count.

Of a message type are declared the fields of wanted columns, the others of their oneofs, and those
that are required. All others are unknown to the parser, which passes over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.exact import Convert, fits, text, time, whole
from rivermouth.verification.formats.json_scalars import Settings, settings_of
from rivermouth.verification.formats.reader import Reader, Undecodable

_TIME = "google.protobuf.Timestamp"
_WRAPPER = ("google.protobuf.", "Value")
_NUMBERS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64"),
)
_WIDE = pa.int64()


def reader(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """Reads the wanted columns out of messages of the types ``schema_file``. Where values are
    framed, the place of the message stands ahead; else it is the one of the setting ``message``, or
    the first.
    """
    given = dict(decoder)
    types, name, framed = (
        given.pop("schema_file"),
        given.pop("message", ""),
        given.pop("framing", ""),
    )
    try:
        known = json.loads(types)
        top, _, _ = known["top"], known["messages"], known["enums"]
    except (ValueError, LookupError, TypeError):
        return _refusing("no schema of Protobuf")
    kinds = pa.struct([(each, schema.field(each).type) for each in columns])
    settings, made = settings_of(given), dict[str, Reader]()

    def of(message: str) -> Reader:
        if message not in made:
            made[message] = _reader(known, message, kinds, settings)
        return made[message]

    if not framed:
        return of(name or top[0]["name"])

    def read(value: bytes) -> tuple[Any, ...]:
        at, path = _path(value)
        return of(_at(top, path))(value[at:])

    return read


def _path(value: bytes) -> tuple[int, list[int]]:
    """Where the message begins, and its place in the file. One zero stands for the first one."""
    numbers: list[int] = []
    at, count = _zigzag(value, 0)
    if not 0 <= count <= 32:
        raise Undecodable("the path of the message is too long")
    for _ in range(count):
        at, number = _zigzag(value, at)
        numbers.append(number)
    return at, numbers or [0]


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(value) or shift > 63:
            raise Undecodable("the path of the message is no number")
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return at, (number >> 1) ^ -(number & 1)


def _at(top: Sequence[Any], path: Sequence[int]) -> str:
    name, among = "", top
    for each in path:
        if not 0 <= each < len(among):
            raise Undecodable(f"there is no message at {[*path]}")
        name, among = among[each]["name"], among[each]["inside"]
    return name


def _reader(known: Any, name: str, kinds: pa.StructType, settings: Settings) -> Reader:
    if name not in known["messages"]:
        return _refusing(f"there is no message {name}")
    fold: Callable[[str], str] = str.lower if settings.any_case else str
    names = {fold(each["name"]) for each in known["messages"][name]["fields"]}
    if settings.fields and names.isdisjoint(fold(each) for each in settings.fields):
        return _refusing("it has none of the fields of the schema")
    declared = _Declared(known, settings)
    try:
        convert = declared.message(name, kinds, "M")
    except Undecodable as fault:
        return _refusing(str(fault))
    parse = declared.parser("M")
    return lambda value: tuple(convert(parse(value)).values())


def _refusing(reason: str) -> Reader:
    def read(value: bytes) -> tuple[Any, ...]:
        raise Undecodable(reason)

    return read


class _Declared:
    """Declares what is wanted, message by message, in a file of its own."""

    def __init__(self, known: Any, settings: Settings) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self._known, self._settings = known, settings
        self._file = FileDescriptorProto(name="wanted.proto", syntax="proto2")
        self._names = 0

    def parser(self, name: str) -> Callable[[bytes], Any]:
        """Parses a declared message. Raises Undecodable."""
        from google.protobuf import descriptor_pool, message_factory
        from google.protobuf.message import DecodeError

        pool = descriptor_pool.DescriptorPool()
        pool.Add(self._file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

        def parse(value: bytes) -> Any:
            try:
                found = kind.FromString(value)
            except DecodeError as fault:
                raise Undecodable(f"no message: {fault}") from fault
            if not found.IsInitialized():
                raise Undecodable("a required field is missing")
            return found

        return parse

    def message(self, name: str, kind: pa.StructType, into: str) -> Callable[[Any], dict[str, Any]]:
        """Declare it under the name ``into``; what makes rows of it. Raises Undecodable."""
        given, made = self._known["messages"][name], self._file.message_type.add(name=into)
        fold: Callable[[str], str] = str.lower if self._settings.any_case else str
        fields = {fold(each["name"]): each for each in given["fields"]}
        converts: dict[str, Callable[[Any], Any]] = {}
        wanted: dict[int, str] = {}
        for column in kind:
            field = fields.get(fold(column.name))
            if field is None:
                converts[column.name] = lambda _: None
                continue
            converts[column.name] = self._field(made, field, column.type, wanted)
        taken = {e["choice"] for e in given["fields"] if e["choice"] and e["number"] in wanted}
        for each in given["fields"]:
            beside = each["choice"] in taken or each["required"]
            if each["number"] not in wanted and beside:
                self._beside(made, each)
        return lambda found: {each: convert(found) for each, convert in converts.items()}

    def _beside(self, made: Any, field: Any) -> None:
        """Declare a field of which only the presence counts."""
        if field["kind"] == "enum":
            self._add_enum(made, field)
        elif field["kind"] == "group":
            name = self._file.message_type.add(name=self._new()).name
            self._add(made, field, "group", name)
        else:
            self._add(made, field, _WIRE.get(field["kind"], field["kind"]))

    def _field(
        self, made: Any, field: Any, kind: pa.DataType, wanted: dict[int, str]
    ) -> Callable[[Any], Any]:
        if field["number"] in wanted:
            raise Undecodable(f"two columns of the field {field['name']}")
        name = wanted[field["number"]] = f"f{field['number']}"
        entry = self._known["messages"].get(field["type"], {})
        if field["repeated"] and entry.get("entry"):
            return self._map(made, field, kind, name)
        if not field["repeated"]:
            convert = self._single(made, field, kind)
            zero = None if field["presence"] else self._zero(field, convert)

            def single(found: Any) -> Any:
                return convert(getattr(found, name)) if found.HasField(name) else zero

            return single
        if not pa.types.is_list(kind):
            raise Undecodable(f"a repeated field for a column of type {kind}")
        item = self._single(made, field, kind.value_type)
        return lambda found: [item(each) for each in getattr(found, name)]

    def _map(self, made: Any, field: Any, kind: pa.DataType, name: str) -> Callable[[Any], Any]:
        if not pa.types.is_map(kind):
            raise Undecodable(f"a map for a column of type {kind}")
        inner = self._known["messages"][field["type"]]
        of = {each["name"]: each for each in inner["fields"]}
        pair = self._new()
        entry = self._file.message_type.add(name=pair)
        self._add(made, field, "message", pair)
        key = self._single(entry, of["key"], _KEYS.get(of["key"]["kind"], _WIDE))
        inside = self._known["messages"].get(of["value"]["type"], {}).get("fields", ())
        lacks = any(each["required"] for each in inside) and not pa.types.is_binary(kind.item_type)
        item = self._single(entry, {**of["value"], "required": lacks}, kind.item_type)
        closed = self._known["enums"].get(of["value"]["type"], {}).get("closed", False)

        def read(found: Any) -> list[tuple[str, Any]]:
            pairs: dict[str, Any] = {}
            for each in getattr(found, name):
                if closed and _has_unknown(each, 2):
                    continue
                its = key(each.f1)
                spelt = str(its).lower() if isinstance(its, bool) else str(its)
                pairs.pop(spelt, None)  # of equal keys the last one counts, at its place
                there = each.HasField("f2")
                pairs[spelt] = item(each.f2) if there else _or_none(item, each.f2)
            return [*pairs.items()]

        return read

    def _single(self, made: Any, field: Any, kind: pa.DataType) -> Convert:
        if field["kind"] == "group":
            raise Undecodable("a group")
        if field["kind"] != "message" or pa.types.is_binary(kind):
            return self._scalar(made, field, kind)
        inner: pa.DataType = kind
        convert: Convert = _as_it_is
        if field["type"] == _TIME and pa.types.is_timestamp(kind) and kind.tz is not None:
            inner = pa.struct([("seconds", _WIDE), ("nanos", pa.int32())])
            convert = partial(_time, self._settings)
        elif _is_wrapper(field["type"]) and not pa.types.is_struct(kind):
            inner, convert = pa.struct([("value", kind)]), _value
        if not pa.types.is_struct(inner):
            raise Undecodable(f"{field['type']} for a column of type {kind}")
        name = self._new()
        self._add(made, field, "message", name)
        row = self.message(field["type"], inner, name)
        return lambda found: convert(row(found))

    def _scalar(self, made: Any, field: Any, kind: pa.DataType) -> Convert:
        form = field["kind"]
        declared = {"string": "bytes", "message": "bytes"}.get(form, form)
        found: Convert | None = None
        if form in _NUMBERS:
            found = whole("", kind, self._settings)
        elif form in ("float", "double"):
            wide = pa.types.is_float64(kind) or (form == "float" and pa.types.is_float32(kind))
            found = _as_it_is if wide else None
        elif form == "bool":
            found = _as_it_is if pa.types.is_boolean(kind) else None
        elif form == "enum":
            return self._enum(made, field, kind)
        elif pa.types.is_binary(kind):
            found = _as_it_is
        elif form == "string" and pa.types.is_string(kind):
            found = text
        if found is None:
            raise Undecodable(f"{form} for a column of type {kind}")
        self._add(made, field, declared)
        return found

    def _add_enum(self, made: Any, field: Any) -> dict[int, str]:
        """Declare an enum; its names by their numbers."""
        known = self._known["enums"][field["type"]]
        names = {int(number): name for number, name in known["names"].items()}
        if known["closed"]:
            declared = self._file.enum_type.add(name=self._new())
            for number in names:
                declared.value.add(name=f"{declared.name}_{len(declared.value)}", number=number)
            self._add(made, field, "enum", declared.name)
        else:
            self._add(made, field, "int32")
        return names

    def _enum(self, made: Any, field: Any, kind: pa.DataType) -> Convert:
        names = self._add_enum(made, field)
        if pa.types.is_string(kind):
            return lambda value: fits(names.get(value), value in names)
        if not pa.types.is_integer(kind):
            raise Undecodable(f"an enum for a column of type {kind}")
        return whole("", kind, self._settings) or _as_it_is

    def _zero(self, field: Any, convert: Convert) -> Any:
        """The value of a field without presence that is not there."""
        form = field["kind"]
        if form == "enum":
            return _or_none(convert, 0)
        if form in ("string", "bytes"):
            return convert(b"")
        return convert({"bool": False, "float": 0.0, "double": 0.0}.get(form, 0))

    def _new(self) -> str:
        self._names += 1
        return f"T{self._names}"

    def _add(self, made: Any, field: Any, form: str, name: str = "") -> None:
        one = made.field.add(name=f"f{field['number']}", number=field["number"])
        one.type = getattr(one, f"TYPE_{form.upper()}")
        label = "REPEATED" if field["repeated"] else "REQUIRED" if field["required"] else "OPTIONAL"
        one.label = getattr(one, f"LABEL_{label}")
        if name:
            one.type_name = f".{name}"
        if field["choice"]:
            listed = [each.name for each in made.oneof_decl]
            if field["choice"] not in listed:
                made.oneof_decl.add(name=field["choice"])
                listed.append(field["choice"])
            one.oneof_index = listed.index(field["choice"])


_KEYS = {"string": pa.string(), "bool": pa.bool_()}
_WIRE = {"message": "bytes", "string": "bytes"}
"""As what is declared of which only the presence counts."""


def _has_unknown(message: Any, number: int) -> bool:
    """Whether a number came that its closed enum does not have."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    kept = UnknownFieldSet(message)
    each = (kept[at] for at in range(len(kept)))
    return any((one.field_number, one.wire_type) == (number, 0) for one in each)


def _value(row: Mapping[str, Any]) -> Any:
    return row["value"]


def _as_it_is(value: Any) -> Any:
    return value


def _or_none(convert: Convert, value: Any) -> Any:
    try:
        return convert(value)
    except Undecodable:
        return None


def _is_wrapper(name: str) -> bool:
    begin, end = _WRAPPER
    return name.startswith(begin) and name.endswith(end) and name.count(".") == 2


def _time(settings: Settings, row: Mapping[str, int]) -> int:
    seconds, nanos = row["seconds"] or 0, row["nanos"] or 0
    fits(nanos, 0 <= nanos < 10**9)
    return int(time("nanos", settings)(seconds * 10**9 + nanos))
