"""What the decoder of a format may be allowed, and how the ledger names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rivermouth.config import Config, json_schema
from rivermouth.config.formats import FORMATS, Format

pytestmark = pytest.mark.unit

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]


@pytest.fixture
def _xml(monkeypatch: pytest.MonkeyPatch) -> None:
    xml = Format("xml", "nowhere:value", "nowhere:reader", {"RM699": "no XML"})
    monkeypatch.setitem(FORMATS.by_name, "xml", xml)


def changed(lake: str, source: str) -> str:
    return lake.replace("format: json", source)


TOLD: list[tuple[str, dict[str, Any]]] = [
    ("format: json", {}),
    ("format: json, lenient: [], timestamps: {}", {}),
    ("format: json, timestamps: {unit: ms}", {"timestamps": {"unit": "ms"}}),
    (
        "format: json, timestamps: {fraction: cut, unit: ns}",
        {"timestamps": {"unit": "ns", "fraction": "cut"}},
    ),
    (
        "format: json, lenient: [repeated_names, any_case]",
        {"lenient": ["any_case", "repeated_names"]},
    ),
    ("format: xml", {}),
]


@pytest.fixture
def _second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder of JSON has its second version."""
    known = FORMATS.by_name["json"]
    assert known.key is not None
    second = replace(known, version=2, key=replace(known.key, version=2))
    monkeypatch.setitem(FORMATS.by_name, "json", second)


@pytest.mark.usefixtures("_xml")
@pytest.mark.parametrize(("source", "told"), TOLD)
def test_the_ledger_is_told_what_is_not_the_default(
    source: str, told: dict[str, Any], lake: str, loads: Loads
) -> None:
    pipeline = loads(changed(lake, source)).pipelines["p"]
    assert pipeline.decoder == told
    assert pipeline.identity == loads(lake).pipelines["p"].identity, "it may change at any time"


@pytest.mark.usefixtures("_xml", "_second")
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("format: json, lenient: [any_case]", {"version": 2, "lenient": ["any_case"]}),
        ("format: json, key: json", {"version": 2}),
        ("format: json, key: string", {"version": 2}),
        ("format: xml, key: json", {"key": {"version": 2}}),
        ("format: xml, key: string", {}),
    ],
)
def test_a_later_version_is_told_also_that_of_a_form_of_keys_that_is_not_the_formats_own(
    source: str, told: dict[str, Any], lake: str, loads: Loads
) -> None:
    text = changed(lake, source).replace("{table: s.t}", "{table: s.t, mode: upsert, keys: [id]}")
    assert loads(text).pipelines["p"].decoder == told


@pytest.mark.usefixtures("_xml")
def test_a_format_that_knows_no_such_setting_says_which_does(lake: str, problems: Problems) -> None:
    source = "format: xml, timestamps: {unit: ms, fraction: cut}, lenient: [any_case]"
    found = problems(changed(lake, source))
    names = ["timestamps.unit", "timestamps.fraction", "lenient"]
    fix = "write format: json or avro or protobuf or csv or string, or remove it"
    assert [each.partition(" RM107 ")[2] for each in found] == [
        f"pipelines.p.source.{name} has no meaning for format xml — {fix}" for name in names
    ]


def test_the_schema_offers_the_names() -> None:
    schema: Any = json_schema()
    (pipeline,) = schema["properties"]["pipelines"]["patternProperties"].values()
    source = pipeline["properties"]["source"]["properties"]
    assert source["lenient"]["items"]["enum"][0] == "number_in_text"
    times = source["timestamps"]["properties"]
    assert times["unit"]["anyOf"][0]["enum"] == ["s", "ms", "us", "ns"]
    assert times["fraction"]["anyOf"][0]["enum"] == ["cut"]
