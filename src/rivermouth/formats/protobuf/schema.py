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
