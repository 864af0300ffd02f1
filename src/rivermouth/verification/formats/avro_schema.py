"""Schemas of Avro by its specification, as the checker reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from rivermouth.verification.formats.reader import Undecodable

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def schema_of(text: str) -> Any:
    """The schema of a text: JSON with each type in the place of its name. Raises Undecodable for
    one that is none, and for one that holds itself.
    """
    try:
        return _resolved(json.loads(text), "", {})
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as fault:
        raise Undecodable(f"no schema of Avro: {fault}") from fault


def _resolved(given: Any, space: str, known: dict[str, Any]) -> Any:
    """``known`` has types by their full names; None for one that is not at its end."""
    if isinstance(given, list):
        found = [_resolved(each, space, known) for each in given]
        if any(isinstance(each, list) for each in found):
            raise Undecodable("a union directly in a union")
        return found
    if isinstance(given, str):
        return _named(given, space, known)
    kind = given["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return _defined(given, space, known)
    if kind in ("array", "map"):
        inner = "items" if kind == "array" else "values"
        return {"type": kind, inner: _resolved(given[inner], space, known)}
    return given if isinstance(kind, str) and kind in _PRIMITIVES else _resolved(kind, space, known)


def _named(name: str, space: str, known: Mapping[str, Any]) -> Any:
    if name in _PRIMITIVES:
        return {"type": name}
    full = name if "." in name else f"{space}.{name}"
    if full not in known:
        full = name
    if known.get(full) is None:
        raise Undecodable("a schema that holds itself" if full in known else f"no type {name}")
    return known[full]


def _defined(given: Mapping[str, Any], space: str, known: dict[str, Any]) -> Any:
    name, kind = given["name"], given["type"]
    outer, dot, _ = name.rpartition(".")
    space = outer if dot else given.get("namespace", space) or ""
    full = name if dot or not space else space + "." + name
    _refuse(full in known, f"{full} comes twice")
    known[full] = None
    if kind == "enum":
        symbols, default = given["symbols"], given.get("default")
        _refuse(not isinstance(symbols, list), "symbols that are no list")
        _refuse(not all(isinstance(each, str) for each in symbols), "a symbol that is no text")
        _refuse(len({*symbols}) < len(symbols), f"a symbol of {full} comes twice")
        _refuse(bool(default) and default not in symbols, f"{default} is no symbol of {full}")
        made = given
    elif kind == "fixed":
        _refuse(type(given["size"]) is not int or not 0 <= given["size"] < 2**31, "no size")
        made = given
    else:
        _refuse(not isinstance(given["fields"], list), "fields that are no list")
        fields = [
            {"name": each["name"], "type": _resolved(each["type"], space, known)}
            for each in given["fields"]
        ]
        names = {each["name"] for each in fields}
        _refuse(not all(isinstance(each, str) for each in names), "a field without a name")
        _refuse(len(names) < len(fields), f"a field of {full} comes twice")
        made = {"type": "record", "fields": fields}
    known[full] = made
    return made


def _refuse(bad: bool, why: str) -> None:
    if bad:
        raise Undecodable(why)


ZONED = "a text with a zone"
_MEANT = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    **{
        f"{local}timestamp-{unit}": "long"
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
    ZONED: "string",
}
"""Meanings, and the type that each is one of; decimals and uuids are judged by their sizes."""
_OF_CONNECT = {
    f"io.debezium.time.{name}": meaning
    for name, meaning in (
        ("Date", "date"),
        ("Timestamp", "local-timestamp-millis"),
        ("MicroTimestamp", "local-timestamp-micros"),
        ("NanoTimestamp", "local-timestamp-nanos"),
        ("ZonedTimestamp", ZONED),
    )
}


def meaning(name: str, schema: Mapping[str, Any]) -> str:
    """What values mean; empty where the schema says what the specification has no effect of."""
    told = schema.get("logicalType", _OF_CONNECT.get(str(schema.get("connect.name")), ""))
    if not isinstance(told, str) or schema.get("logicalType") == ZONED:
        return ""
    if told == "uuid":
        return told if name == "string" or (name == "fixed" and schema["size"] == 16) else ""
    if told != "decimal":
        return told if _MEANT.get(told) == name else ""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if name not in ("bytes", "fixed") or type(precision) is not int or type(scale) is not int:
        return ""
    bits = 8 * schema["size"] - 1 if name == "fixed" else None
    held = bits is None or precision <= bits * math.log10(2)
    return told if held and 0 <= scale <= precision and precision > 0 else ""
