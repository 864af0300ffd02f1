"""One registration makes a format, a form of keys or a shape known to configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.config import Config, json_schema
from rivermouth.config.formats import FORMATS, Format, KeyForm
from rivermouth.config.registry import SHAPES, Shape

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]

CBOR = Format(
    name="cbor",
    decoder="nowhere:value",
    reader="nowhere:reader",
    reasons={"RM699": "not Avro"},
    key=KeyForm(name="cbor", decoder="nowhere:key", reader="nowhere:key_reader"),
)
UUID = KeyForm(name="uuid", decoder="nowhere:uuid", reader="nowhere:uuid", single=True)
SHORT = replace(UUID, name="short", integral=True)
HISTORY = Shape(
    "history",
    "keep each version of a row",
    "nowhere:rows",
    "nowhere:proof",
    keyed=True,
    ordered=True,
    deletes=True,
)
SAMPLE = Shape("sample", "keep some records", "nowhere:rows", "nowhere:proof")
FIRST = replace(SAMPLE, name="first_seen", keyed=True)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS, "by_name", dict(FORMATS.by_name))
    monkeypatch.setattr(FORMATS, "plain_keys", dict(FORMATS.plain_keys))
    monkeypatch.setattr(SHAPES, "by_name", dict(SHAPES.by_name))
    FORMATS.register(CBOR)
    FORMATS.register_key(UUID)
    FORMATS.register_key(SHORT)
    SHAPES.register(HISTORY)
    SHAPES.register(SAMPLE)
    SHAPES.register(FIRST)


def _changed(lake: str, source: str, target: str = "mode: history, keys: [id]") -> str:
    text = lake.replace("format: json", source)
    return text.replace("{table: s.t}", f"{{table: s.t, {target}}}")


def test_a_registered_name_loads_and_its_value_is_asked(lake: str, loads: Loads) -> None:
    pipeline = loads(_changed(lake, "format: cbor, key: cbor")).pipelines["p"]
    assert (pipeline.source.format, pipeline.format) == ("cbor", CBOR)
    assert (pipeline.source.key, pipeline.key_form) == ("cbor", CBOR.key)
    assert (pipeline.target.mode, pipeline.shape) == ("history", HISTORY)
    assert pipeline.identity["mode"] == "history"
    assert pipeline.identity["key"] == "cbor"


def test_a_name_from_a_variable_is_plain_text(lake: str, loads: Loads) -> None:
    text = _changed(lake, 'format: "${env:F}", key: "${env:F}"')
    source = loads(text, {"F": "cbor"}).pipelines["p"].source
    assert {type(source.format), type(source.key)} == {str}


def test_an_unknown_name_is_told_the_registered_ones(lake: str, problems: Problems) -> None:
    format_, key, mode = problems(_changed(lake, "format: xml, key: uid", "mode: histroy"))
    assert f"p.source.format must be {' or '.join(FORMATS.by_name)}, not" in format_
    forms = "string or long or uuid or short or json or avro or protobuf or cbor"
    assert f"p.source.key must be {forms}, not" in key
    assert 'did you mean "uuid"?' in key
    known = " or ".join(SHAPES.by_name)
    assert f"p.target.mode must be {known}, not" in mode
    assert 'did you mean "history"?' in mode


RULES = [
    pytest.param(
        "key: string",
        "mode: history, properties: {delta.appendOnly: true}",
        ["is a history without keys", "does not go with mode: history"],
        id="a keyed shape",
    ),
    pytest.param(
        "key: string",
        "mode: sample, order_by: [id]",
        [
            "source.key has no meaning in mode sample — it says which row a null value deletes; "
            "write mode: upsert or history, or remove it",
            "order_by has no meaning in mode sample — write mode: upsert or history, or remove it",
        ],
        id="a shape without keys",
    ),
    pytest.param(
        "key: string",
        "mode: first_seen, order_by: [id]",
        [
            "is a first_seen without keys",
            "source.key has no meaning in mode first_seen — it says which row a null value "
            "deletes; write mode: upsert or history, or remove it",
            "order_by has no meaning in mode first_seen — write mode: upsert or history, or "
            "remove it",
        ],
        id="a shape with keys alone",
    ),
    pytest.param(
        "topics: [u]",
        "mode: sample, keys: [id]",
        [
            "keys has no meaning in mode sample — write mode: upsert or insert or aggregate or "
            "history or first_seen, or remove"
        ],
        id="keys",
    ),
    pytest.param(
        "key: uuid",
        "mode: history, keys: [id, at]",
        [
            'is "uuid", which holds one column, but there are 2 in keys'
            " — write key: json or avro or protobuf or cbor"
        ],
        id="a key of one column",
    ),
    pytest.param(
        "key: short",
        "mode: history, keys: [at]",
        ["is short, but the key column is a TIMESTAMP — ", "or write key: string or uuid"],
        id="a key of an integer",
    ),
]


@pytest.mark.parametrize(("key", "target", "expected"), RULES)
def test_rules_ask_the_registered_value(
    key: str, target: str, expected: list[str], lake: str, problems: Problems
) -> None:
    found = "\n".join(problems(_changed(lake, f"format: cbor, {key}", target)))
    for words in expected:
        assert words in found


def test_the_schema_offers_the_registered_names() -> None:
    schema: Any = json_schema()
    (pipeline,) = schema["properties"]["pipelines"]["patternProperties"].values()
    source, target = (pipeline["properties"][name]["properties"] for name in ("source", "target"))
    choices = [source["format"], source["key"], target["mode"]]
    assert [choice["anyOf"][0]["enum"] for choice in choices] == [
        [*FORMATS.by_name],
        ["string", "long", "uuid", "short", "json", "avro", "protobuf", "cbor"],
        [*SHAPES.by_name],
    ]


def test_the_descriptions_say_which_registered_shape_takes_a_setting() -> None:
    schema: Any = json_schema()
    (pipeline,) = schema["properties"]["pipelines"]["patternProperties"].values()
    source, target = (pipeline["properties"][name]["properties"] for name in ("source", "target"))
    said = [each["description"] for each in (target["keys"], target["order_by"], source["key"])]
    assert (
        "Required for mode `upsert` or `insert` or `aggregate` or `history` or `first_seen`."
        in said[0]
    )
    assert said[0].endswith("Refused for mode `append` or `send` or `sample`.")
    assert said[1].endswith(
        "`append` or `insert` or `aggregate` or `send` or `sample` or `first_seen`."
    )
    assert said[2].endswith(
        "`append` or `insert` or `aggregate` or `send` or `sample` or `first_seen`."
    )
    assert target["mode"]["description"].endswith("`first_seen`: keep some records.")
