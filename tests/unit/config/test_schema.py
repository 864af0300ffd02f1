"""The JSON Schema accepts the files that load and refuses what an editor can know is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ruamel.yaml import YAML

from rivermouth.config import Config, Pipeline, Source, Target, json_schema
from rivermouth.config.written import keys_of

LAKE = """
version: 1
kafka: {bootstrap.servers: "${env:K:-k:9092}", a.b: true, c.d: "x${secret:s/k}"}
warehouse: lake
trigger: 10s
pipelines:
  p:
    source: {topics: [t], format: json, start: {t: {"0": 5}}, kafka.max.poll.records: 5}
    schema: id BIGINT
    target: {table: s.t, mode: upsert, keys: [id], order_by: [id], properties: {delta.x: true}}
  q:
    source: {subscribe: "a,b", format: "${env:F}", startingOffsets: latest, failOnDataLoss: true}
    schema: id BIGINT
    target: {table: "${env:S}.t"}
"""
BROKEN = [
    ("version: 1", "version: 2"),
    ("version: 1", "version: true"),
    ("warehouse: lake", "warehose: lake"),
    ("warehouse: lake", "warehouse: 5"),
    ("warehouse: lake", "warehouse: {schema: x}"),
    ("warehouse: lake", "warehouse: {catalog: main, volme: x}"),
    ("trigger: 10s", "trigger: 10"),
    ("{bootstrap.servers", "{servers"),
    ("${env:K:-k:9092}", "${secret:s/k}"),
    ("topics: [t]", "topics: []"),
    ("topics: [t]", "topics: [t], subscribe: t"),
    ("topics: [t], ", ""),
    ("format: json", "format: jsn"),
    ("format: json", "formt: json"),
    ("start: {t:", "startingOffsets: latest, start: {t:"),
    ("5}}", "-3}}"),
    ("table: s.t", "table: t"),
    ("mode: upsert", "mode: upsrt"),
    ("keys: [id]", "keys: id"),
    ("  p:", "  P-1:"),
]
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def _wrong(schema: Mapping[str, Any], value: object) -> Iterator[str]:
    """What a validator of the keywords that we use would say: enough to test our schema."""
    if "const" in schema and json.dumps(schema["const"]) != json.dumps(value):
        yield "const"
    if "enum" in schema and value not in schema["enum"]:
        yield "enum"
    types = schema.get("type", list(TYPES))
    if not any(_is(value, name) for name in ([types] if isinstance(types, str) else types)):
        yield "type"
    if "anyOf" in schema and all(any(_wrong(one, value)) for one in schema["anyOf"]):
        yield "anyOf"
    if "oneOf" in schema and sum(not any(_wrong(one, value)) for one in schema["oneOf"]) != 1:
        yield "oneOf"
    for one in schema.get("allOf", ()):
        yield from _wrong(one, value)
    if "not" in schema and not any(_wrong(schema["not"], value)):
        yield "not"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield "pattern"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield "minimum"
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield "minItems"
        for item in value:
            yield from _wrong(schema.get("items", {}), item)
    if isinstance(value, dict):
        yield from _wrong_members(schema, value)


def _is(value: object, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _wrong_members(schema: Mapping[str, Any], value: Mapping[str, object]) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"required {name}"
    for name, member in value.items():
        patterns = schema.get("patternProperties", {})
        known = [sub for pattern, sub in patterns.items() if re.search(pattern, name)]
        if name in schema.get("properties", {}):
            known.append(schema["properties"][name])
        other = schema.get("additionalProperties", True)
        if not known and other is False:
            yield f"additional {name}"
        for sub in known or [other if isinstance(other, dict) else {}]:
            yield from _wrong(sub, member)


def _yaml(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


def test_a_sound_file_fits_the_schema() -> None:
    assert list(_wrong(json_schema(), _yaml(LAKE))) == []


def test_a_catalog_in_place_of_a_folder_fits_the_schema() -> None:
    text = LAKE.replace("warehouse: lake", "warehouse: {catalog: main, schema: s, volume: v}")
    assert list(_wrong(json_schema(), _yaml(text))) == []


@pytest.mark.parametrize(("old", "new"), BROKEN)
def test_a_broken_file_does_not(old: str, new: str) -> None:
    assert LAKE.count(old) >= 1
    assert list(_wrong(json_schema(), _yaml(LAKE.replace(old, new, 1)))) != []


def test_the_schema_is_json_and_knows_every_key_with_a_description() -> None:
    schema: dict[str, Any] = json.loads(json.dumps(json_schema()))
    pipelines = schema["properties"]["pipelines"]["patternProperties"]
    (pipeline,) = pipelines.values()
    source, target = (pipeline["properties"][name] for name in ("source", "target"))
    for part, keys in (
        (schema, keys_of(Config)),
        (pipeline, keys_of(Pipeline)),
        (source, keys_of(Source)),
        (target, keys_of(Target)),
    ):
        assert set(part["properties"]) == set(keys)
        for name, sub in part["properties"].items():
            assert sub.get("description"), name
