"""Message types of Protobuf as values, from the descriptors that its compiler makes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorSet,
    )


class BadSchema(ValueError):
    """The descriptors do not hold what is asked for; the text says why."""


@dataclass(frozen=True)
class Field:
    """``kind``: ``int32`` … ``message``, as the language names it. ``type``: the full name of its
    message or enum. ``presence``: one that is absent has no value; else it has that of its type.
    ``choice``: the name of its oneof. ``required``: a record without it is bad.
    """

    number: int
    name: str
    kind: str
    type: str = ""
    repeated: bool = False
    presence: bool = True
    choice: str = ""
    required: bool = False


@dataclass(frozen=True)
class Message:
    """``entry``: it is an entry of a map, with a field ``key`` and a field ``value``."""

    name: str
    fields: tuple[Field, ...]
    entry: bool = False


@dataclass(frozen=True)
class Enum:
    """Names by number. ``closed``: numbers without a name make no value."""

    name: str
    names: Mapping[int, str]
    closed: bool


@dataclass(frozen=True)
class Types:
    """All that a set of files defines, by full names, and the messages of the last one in order."""

    messages: Mapping[str, Message]
    enums: Mapping[str, Enum]
    top: tuple[Top, ...]

    def at(self, indexes: Sequence[int]) -> Message | None:
        """The message at a path of indexes, as serialisers with a registry name it."""
        among, found = self.top, None
        for each in indexes:
            if not 0 <= each < len(among):
                return None
            found, among = among[each], among[each].inside
        return None if found is None else self.messages[found.name]

    def to_json(self) -> str:
        """The same as text, for ``from_json``."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Types:
        """The types that ``to_json`` wrote."""
        given = json.loads(text)
        messages = {
            name: Message(each["name"], tuple(Field(**f) for f in each["fields"]), each["entry"])
            for name, each in given["messages"].items()
        }
        enums = {
            name: Enum(name, {int(n): text for n, text in each["names"].items()}, each["closed"])
            for name, each in given["enums"].items()
        }
        return cls(messages, enums, tuple(map(_top, given["top"])))


@dataclass(frozen=True)
class Top:
    """A message of a file, and those that are defined in it."""

    name: str
    inside: tuple[Top, ...]


def _top(given: Mapping[str, Any]) -> Top:
    return Top(given["name"], tuple(map(_top, given["inside"])))


def types_of(files: FileDescriptorSet) -> Types:
    """What the files define. Raises BadSchema."""
    messages: dict[str, Message] = {}
    enums: dict[str, Enum] = {}
    top: tuple[Top, ...] = ()
    for file in files.file:
        if file.syntax not in ("", "proto2", "proto3"):
            raise BadSchema(f"{file.name} has the syntax {file.syntax}, which is not known here")
        implicit = file.syntax == "proto3"
        space = f"{file.package}." if file.package else ""
        for enum in file.enum_type:
            _add_enum(enum, space, implicit, enums)
        top = tuple(_add(each, space, implicit, messages, enums) for each in file.message_type)
    return Types(messages, enums, top)


def _add(
    given: DescriptorProto,
    space: str,
    implicit: bool,
    messages: dict[str, Message],
    enums: dict[str, Enum],
) -> Top:
    name = f"{space}{given.name}"
    fields = tuple(_field(each, given, implicit) for each in given.field)
    messages[name] = Message(name, fields, given.options.map_entry)
    for enum in given.enum_type:
        _add_enum(enum, f"{name}.", implicit, enums)
    inside = tuple(_add(each, f"{name}.", implicit, messages, enums) for each in given.nested_type)
    return Top(name, inside)


def _add_enum(
    given: EnumDescriptorProto, space: str, implicit: bool, enums: dict[str, Enum]
) -> None:
    names: dict[int, str] = {}
    for each in given.value:  # of two names of one number the first counts
        names.setdefault(each.number, each.name)
    enums[f"{space}{given.name}"] = Enum(f"{space}{given.name}", names, closed=not implicit)


def _field(given: FieldDescriptorProto, of: DescriptorProto, implicit: bool) -> Field:
    kind = given.Type.Name(given.type).removeprefix("TYPE_").lower()
    in_choice = given.HasField("oneof_index")
    choice = of.oneof_decl[given.oneof_index].name if in_choice else ""
    repeated = given.label == given.LABEL_REPEATED
    return Field(
        number=given.number,
        name=given.name,
        kind=kind,
        type=given.type_name.removeprefix("."),
        repeated=repeated,
        presence=not implicit or in_choice or kind == "message",
        choice=choice,
        required=given.label == given.LABEL_REQUIRED,
    )


TIME = "google.protobuf.Timestamp"
WRAPPERS = frozenset(
    f"google.protobuf.{each}Value"
    for each in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_PLAIN = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "integer"),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), "long"),
    **dict.fromkeys(("uint64", "fixed64"), "decimal(20,0)"),
    **{each: each for each in ("float", "double", "string")},
    "bool": "boolean",
    "bytes": "binary",
    "enum": "string",
}


def columns_of(text: str, message: str = "") -> Any:
    """The type of a message of ``Types.to_json`` as Delta's JSON has it; without a name that of the
    first one. All may be null.

    Raises BadSchema where there is no such message, or one that no column holds.
    """
    types = Types.from_json(text)
    name = message or types.top[0].name
    if name not in types.messages:
        raise BadSchema(f"there is no message {name}")
    return _struct(types, name, ())


def _struct(types: Types, name: str, above: tuple[str, ...]) -> Any:
    if name in above:
        raise BadSchema(f"{name} holds itself: a column cannot hold what has no end")
    fields = [
        {"name": each.name, "type": kind, "nullable": True, "metadata": {}}
        for each in types.messages[name].fields
        if (kind := _column(types, each, (*above, name))) is not None
    ]
    return {"type": "struct", "fields": fields} if fields else None


def _column(types: Types, field: Field, above: tuple[str, ...]) -> Any:
    entry = types.messages.get(field.type)
    if field.repeated and entry is not None and entry.entry:
        value = next(each for each in entry.fields if each.name == "value")
        item = _one(types, value, above)  # a key of any type becomes text
        both = {"keyType": "string", "valueType": item, "valueContainsNull": True}
        return item and {"type": "map", **both}
    one = _one(types, field, above)
    many = {"type": "array", "elementType": one, "containsNull": True}
    return many if field.repeated and one is not None else one


def _one(types: Types, field: Field, above: tuple[str, ...]) -> Any:
    """None for a message without fields: no column holds it."""
    if field.kind == "group":
        raise BadSchema(f"{field.name} is a group, which no column takes")
    if field.kind != "message":
        return _PLAIN[field.kind]
    if field.type == TIME:
        return "timestamp"
    if field.type in WRAPPERS:
        return _PLAIN[types.messages[field.type].fields[0].kind]
    return _struct(types, field.type, above)
