"""Messages as the decoder, the reader of the checker and Google's parser judge them."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from rivermouth.formats.protobuf.decoder import Protobuf
from rivermouth.formats.shredded.reading import Settings
from rivermouth.verification.formats.protobuf import reader
from tests.unit.formats.judged import BAD, judged_alike
from tests.unit.formats.protobuf.compiled import Compiled

SCALARS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "Mood"),
    *("fixed64", "sfixed64", "double", "fixed32", "sfixed32", "float", "string", "bytes"),
)
"""``Mood`` is an enum. The first fourteen may be packed."""
REPEATED, UNPACKED, ONE = 20, 40, 60
"""What is added to the number of a type: for its list, its list without packing, its oneof."""


def number_of(kind: str) -> int:
    """The number of the field of a type in ``All``."""
    return SCALARS.index(kind) + 1


def _fields(label: str) -> str:
    each = [(number_of(kind), kind) for kind in SCALARS]
    return "".join(
        [
            *(f"{label} {kind} f_{kind} = {n}; " for n, kind in each),
            *(f"repeated {kind} r_{kind} = {n + REPEATED}; " for n, kind in each),
            *(f"repeated {k} u_{k} = {n + UNPACKED} [packed=false]; " for n, k in each[:14]),
            "oneof one { ",
            *(f"{kind} o_{kind} = {n + ONE}; " for n, kind in each),
            "Inner o_inner = 80; } ",
        ]
    )


_HEAD = 'import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto"; '
_MOOD = "enum Mood { CALM = 0; GLAD = 1; SAD = 2; LOW = -1; } "
_MESSAGES = """
  Inner inner = 101; repeated Inner inners = 102; All deeper = 103;
  map<int32, int32> m_int32 = 104; map<bool, string> m_bool = 105;
  map<string, string> m_string = 106; map<string, Inner> m_inner = 107;
  map<string, Mood> m_mood = 108; map<fixed32, fixed64> m_fixed = 109;
  map<string, google.protobuf.Timestamp> m_time = 110;
  map<string, google.protobuf.Int64Value> m_wrapped = 111;
"""
_PROTO3 = (
    f'syntax = "proto3"; package three; {_HEAD}{_MOOD}'
    "message Inner { int32 n = 1; string s = 2; repeated int32 list = 3; Inner inner = 4; } "
    f"message All {{ {_fields('')} {_MESSAGES} }}"
)
_IN_TWO = _MESSAGES.replace("  Inner", "  optional Inner").replace(" All", " optional All")
_PROTO2 = (
    f'syntax = "proto2"; package two; {_HEAD}{_MOOD}'
    "message Inner { optional int32 n = 1; optional string s = 2; repeated int32 list = 3; } "
    f"message All {{ {_fields('optional')} {_IN_TWO} "
    "optional group G = 121 { optional int32 n = 1; } optional int32 five = 122 [default = 5]; } "
    "message Must { required int32 n = 1; optional string s = 2; } "
    "message MustMood { required Mood mood = 1; optional int32 n = 2; } "
    "message MustGroup { required group G = 1 { optional int32 n = 1; } optional int32 n = 2; } "
    "message Pick { oneof one { Must must = 1; Mood mood = 2; string s = 3; "
    "group G = 4 { optional int32 n = 1; } } } "
    "message Holder { optional Must must = 1; repeated Must musts = 2;"
    " map<string, Must> by = 3; optional int32 n = 4; }"
)


@cache
def compiled(package: str) -> Compiled:
    """The messages of ``three`` and of ``two``: packages for the versions of the language."""
    return Compiled(_PROTO3 if package == "three" else _PROTO2)


def judged(name: str, row: pa.StructType, value: bytes) -> object:
    """See ``judged_alike``."""
    types = compiled(name.partition(".")[0]).types.to_json()
    names = [each.name for each in row]
    read = reader(pa.schema(list(row)), names, {"schema_file": types, "message": name})
    return judged_alike(Protobuf(row, Settings(), types, name), read, value)


def by_google(name: str, row: pa.StructType, value: bytes) -> object:
    """The row of what Google's parser finds, or BAD where it refuses the message."""
    try:
        found = compiled(name.partition(".")[0]).message(name).FromString(value)
        if not found.IsInitialized():
            return BAD
        return tuple(_values(found, row).values())
    except (DecodeError, UnicodeDecodeError):
        return BAD


def _values(message: Any, row: pa.StructType) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    return {each.name: _field(message, fields[each.name], each.type) for each in row}


def _field(message: Any, field: Any, kind: pa.DataType) -> Any:
    found = getattr(message, field.name)
    if pa.types.is_map(kind):
        its = field.message_type.fields_by_name["value"]
        keys = {key: str(key).lower() if isinstance(key, bool) else str(key) for key in found}
        return [(keys[key], _one(found[key], its, kind.item_type)) for key in found]
    if pa.types.is_list(kind):
        return [_one(each, field, kind.value_type) for each in found]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(found, field, kind)


def _one(value: Any, field: Any, kind: pa.DataType) -> Any:
    if field.enum_type is not None and pa.types.is_string(kind):
        known = field.enum_type.values_by_number
        return known[value].name if value in known else value
    if pa.types.is_struct(kind):
        return _values(value, kind)
    if pa.types.is_timestamp(kind):
        return value.seconds * 10**6 + value.nanos // 1000
    if field.message_type is not None:
        return value.SerializeToString() if pa.types.is_binary(kind) else value.value
    return Decimal(value) if pa.types.is_decimal(kind) else value
