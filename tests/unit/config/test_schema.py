"""The JSON Schema accepts the files that load and refuses what an editor can know is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from ruamel.yaml import YAML

from rivermouth.config import Config, Pipeline, Source, Target, json_schema
from rivermouth.config.settings import keys_of
from tests.pages import page, section, snippets
from tests.processes import ROOT
from tests.unit.config.examples import FILES

LAKE = """
version: 1
kafka: {bootstrap.servers: "${env:K:-k:9092}", a.b: true, c.d: "x${secret:s/k}"}
warehouse: lake
trigger: 10s
retry: {for: 10m, from: 200ms, up_to: "${env:U}"}
pipelines:
  p:
    source: {topics: [t], format: json, start: {t: {"0": 5}}, kafka.max.poll.records: 5}
    schema: id BIGINT
    target: {table: s.t, mode: upsert, keys: [id], order_by: [id], properties: {delta.x: true}}
  q:
    source: {subscribe: "a,b", format: "${env:F}", startingOffsets: latest, failOnDataLoss: true}
    schema: id BIGINT
    target: {table: "${env:S}.t"}
    retry: {for: 0s}
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
    ('start: {t: {"0": 5}}', "start: earlist"),
    ('start: {t: {"0": 5}}', "start: {t: ltest}"),
    ('start: {t: {"0": 5}}', 'start: "2026-11-01T06:00:00"'),
    ('{"0": 5}', '{"0": soon}'),
    ("5}}", "-3}}"),
    ("table: s.t", "table: t"),
    ("mode: upsert", "mode: upsrt"),
    ("keys: [id]", "keys: id"),
    ("  p:", "  P-1:"),
    ("format: json", "format: json, key: null"),
    ("from: 200ms", "from: 200"),
    ("from: 200ms", "form: 200ms"),
    ("failOnDataLoss: true", "failOnDataLoss: false"),
    ("kafka.max.poll.records: 5", "kafka_max: 5"),
    ("kafka.max.poll.records: 5", "mirror_group: ''"),
    ("kafka.max.poll.records: 5", "mirror_group: 7"),
]


def _wrong(schema: dict[str, Any], value: object) -> Iterator[str]:
    """What a validator, and so an editor, says of the value."""
    validator = jsonschema_rs.Draft202012Validator(schema)
    yield from (error.message for error in validator.iter_errors(value))


def _yaml(text: str) -> object:
    """What an editor sees: plain JSON values, in which every key is text."""
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text)))


def test_a_sound_file_fits_the_schema() -> None:
    assert list(_wrong(json_schema(), _yaml(LAKE))) == []


def test_a_catalog_in_place_of_a_folder_fits_the_schema() -> None:
    text = LAKE.replace("warehouse: lake", "warehouse: {catalog: main, schema: s, volume: v}")
    assert list(_wrong(json_schema(), _yaml(text))) == []


OWN = [ROOT / "config" / "rivermouth.yml", ROOT / "examples" / "orders" / "lake.yml"]


@pytest.mark.parametrize("text", [*FILES, *(each.read_text(encoding="utf-8") for each in OWN)])
def test_files_that_load_fit_the_schema(text: str) -> None:
    assert list(_wrong(json_schema(), _yaml(text))) == []


def test_the_schema_is_one_and_refers_to_nothing() -> None:
    jsonschema_rs.meta.validate(json_schema())
    assert '"$ref"' not in json.dumps(json_schema())
    assert json.dumps(json_schema()).count('"title"') == 1, "of the whole, not of each part"
    assert '"default": []' not in json.dumps(json_schema()), "nothing to offer"


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


EDITOR = section(page("configuration"), "## Completion in an editor")


def test_an_editor_finds_the_schema_that_the_page_writes() -> None:
    """By the first line of the file, and by the settings of VS Code."""
    [written] = re.findall(r"config schema > (\S+)\n", EDITOR)
    [file], [settings] = snippets(EDITOR, "yaml"), snippets(EDITOR, "json")
    assert file.startswith(f"# yaml-language-server: $schema={written}\n")
    [(named, files)] = json.loads(settings)["yaml.schemas"].items()
    assert named == f"./{written}"
    assert "lake.yml" in files
    assert list(_wrong(json_schema(), _yaml(file))) == []
    assert list(_wrong(json_schema(), _yaml(file.replace("topics", "topcs")))) != []
