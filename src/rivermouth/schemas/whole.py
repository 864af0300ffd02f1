"""One text of a schema and of all that it refers to, as decoders take it."""

from __future__ import annotations

import json
from typing import Any

from rivermouth.formats.protobuf.files import text_of_files
from rivermouth.schemas.registry import Schema


def text_of(schema: Schema) -> str:
    """The text for decoders; one that they refuse, with the reason, where it cannot be made."""
    try:
        return _text(schema)
    except ValueError as fault:
        return f"{schema.kind}: {fault}"


def _text(schema: Schema) -> str:
    if schema.kind == "PROTOBUF":
        return text_of_files(_files("it.proto", schema))
    if schema.kind == "AVRO" and schema.references:
        return _inlined(schema)
    return schema.text


def _files(name: str, schema: Schema) -> dict[str, str]:
    """The texts by the names under which they are imported, itself at the end."""
    found: dict[str, str] = {}
    for each, inner in schema.references.items():
        found |= _files(each, inner)
    found.pop(name, None)
    return {**found, name: schema.text}


def _inlined(schema: Schema) -> str:
    """A text of Avro with each named type defined where it is first used."""
    types: dict[str, Any] = {}
    _collect(schema, types)
    return json.dumps(_placed(json.loads(schema.text), "", types), separators=(",", ":"))


def _collect(schema: Schema, types: dict[str, Any]) -> None:
    for name, inner in schema.references.items():
        _collect(inner, types)
        types[name] = json.loads(inner.text)


def _placed(given: Any, space: str, types: dict[str, Any]) -> Any:
    """``given`` with the types that are not defined yet in the place of their names; those that
    were placed are taken out of ``types``.
    """
    if isinstance(given, str):
        full = given if "." in given or not space else f"{space}.{given}"
        name = full if full in types else given
        return _placed(types.pop(name), "", types) if name in types else given
    if isinstance(given, list):
        return [_placed(each, space, types) for each in given]
    if not isinstance(given, dict):
        return given
    inside = given.get("namespace", space)
    if "." in given.get("name", ""):
        inside = given["name"].rpartition(".")[0]
    made = dict(given)
    for key in ("type", "items", "values"):
        if key in made:
            made[key] = _placed(made[key], inside, types)
    if "fields" in made:
        fields = made["fields"]
        made["fields"] = [{**each, "type": _placed(each["type"], inside, types)} for each in fields]
    return made
