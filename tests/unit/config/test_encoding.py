"""Which settings of ``source`` go with which format, and what stands in the ledger of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config.encoding import Framing
from tests.unit.config.conftest import Loads, Problems

pytestmark = pytest.mark.unit

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; }'
REGISTRY = 'schema_registry: {url: "http://r:8081"}\n'


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "r.avsc").write_text(AVRO, encoding="utf-8")
    (tmp_path / "o.proto").write_text(PROTO, encoding="utf-8")
    (tmp_path / "bad.avsc").write_text('{"type": "recrod"}', encoding="utf-8")
    (tmp_path / "bad.proto").write_text("message {", encoding="utf-8")


def changed(lake: str, source: str, schema: str = "id BIGINT, at TIMESTAMP") -> str:
    return lake.replace("format: json", source).replace("id BIGINT, at TIMESTAMP", schema)


ONE = "id BIGINT"
TOLD: list[tuple[str, str, Framing, dict[str, Any]]] = [
    ("format: json", ONE, Framing.NONE, {}),
    ("format: json, framing: confluent", ONE, Framing.CONFLUENT, {"framing": "confluent"}),
    ("format: json, on_empty: null", ONE, Framing.NONE, {"on_empty": "null"}),
    ("format: avro", ONE, Framing.CONFLUENT, {"framing": "confluent"}),
    ("format: protobuf", ONE, Framing.CONFLUENT, {"framing": "confluent"}),
    ("format: csv", ONE, Framing.NONE, {}),
    (
        'format: csv, csv: {delimiter: ";", null_value: "-"}',
        ONE,
        Framing.NONE,
        {"csv": {"delimiter": ";", "null_value": "-"}},
    ),
    (
        "format: string, lenient: [number_in_text]",
        ONE,
        Framing.NONE,
        {"lenient": ["number_in_text"]},
    ),
    ("format: raw", "body BINARY", Framing.NONE, {}),
]


@pytest.mark.parametrize(("source", "schema", "framing", "told"), TOLD)
def test_the_ledger_is_told_what_is_not_the_default(
    source: str, schema: str, framing: Framing, told: dict[str, Any], lake: str, loads: Loads
) -> None:
    pipeline = loads(REGISTRY + changed(lake, source, schema)).pipelines["p"]
    assert (pipeline.framing, pipeline.decoder) == (framing, told)


def test_the_ledger_is_told_the_schema_of_a_file(lake: str, loads: Loads) -> None:
    avro = loads(changed(lake, "format: avro, schema_file: r.avsc")).pipelines["p"].decoder
    assert json.loads(avro.pop("schema_file")) == json.loads(AVRO)
    assert avro == {}
    source = "format: protobuf, schema_file: o.proto, message: shop.Order"
    protobuf = loads(changed(lake, source)).pipelines["p"].decoder
    assert set(json.loads(protobuf.pop("schema_file"))["messages"]) == {"shop.Order"}
    assert protobuf == {"message": "shop.Order"}


FAULTY = [
    ("format: avro", ONE, "source.format is avro, whose records name their schema by a number"),
    ("format: avro, framing: none", ONE, "nothing says which schema avro records have"),
    (
        "format: avro, schema_file: none.avsc",
        ONE,
        "source.schema_file names a file that is not there",
    ),
    ("format: avro, schema_file: bad.avsc", ONE, "names a file that holds no schema of avro"),
    ("format: protobuf, schema_file: bad.proto", ONE, "holds no schema of protobuf: bad.proto"),
    (
        "format: avro, framing: confluent, schema_file: r.avsc",
        ONE,
        "source.schema_file has no meaning for framed values",
    ),
    ("format: protobuf, message: m.M", ONE, "source.message has no meaning for framed values"),
    ("format: json, schema_file: r.avsc", ONE, "source.schema_file has no meaning for format json"),
    ("format: json, message: m.M", ONE, "source.message has no meaning for format json"),
    (
        'format: json, csv: {delimiter: ";"}',
        ONE,
        "source.csv.delimiter has no meaning for format json",
    ),
    ("format: raw, framing: confluent", "b BINARY", "source.framing has no meaning for format raw"),
    ("format: csv, on_empty: null", ONE, "source.on_empty has no meaning for format csv"),
    (
        "format: csv, lenient: [any_case]",
        ONE,
        "lenient[0] is any_case, which has no meaning for format csv",
    ),
    ("format: csv, csv: {delimiter: ab}", ONE, "source.csv.delimiter must be one character"),
    ("format: csv, csv: {null_value: '\"'}", ONE, "source.csv.null_value can stand in no field"),
    ("format: csv", "id ARRAY<INT>", "schema has the column id of type ARRAY"),
    ("format: string", "a INT, b INT", "schema has 2 columns, but a value of format string is one"),
    ("format: raw", "a INT", "schema has the column a of type INT — format raw has: BINARY"),
]


@pytest.mark.parametrize(("source", "schema", "words"), FAULTY)
def test_what_does_not_go_together_is_refused(
    source: str, schema: str, words: str, lake: str, problems: Problems
) -> None:
    found = problems(changed(lake, source, schema))
    assert len(found) == 1
    assert words in found[0].replace('"', "")


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{}", "schema_registry lacks url — add url: http://host:8081"),
        ("{url: r:8081}", "schema_registry.url must be http://host:port"),
        ('{url: "http://u:p@r:8081"}', "write a login as basic.auth.user.info"),
        ('{url: "http://r:8081", timeout: soon}', "schema_registry.timeout must be a number"),
        ('{url: "${secret:a/b}"}', "schema_registry.url cannot be a secret"),
    ],
)
def test_a_faulty_registry_is_refused(
    section: str, words: str, lake: str, problems: Problems
) -> None:
    [found] = problems(f"schema_registry: {section}\n{lake}")
    assert words in found


def test_secrets_of_the_registry_are_never_shown(lake: str, loads: Loads) -> None:
    options = '{url: "http://a:1,http://b:2", basic.auth.user.info: "u:p", timeout: 5}'
    registry = loads(f"schema_registry: {options}\n{lake}").schema_registry
    assert registry is not None
    assert "u:p" not in repr(registry)
    assert registry.revealed(lambda *_: "")["basic.auth.user.info"] == "u:p"
    assert registry.url == "http://a:1,http://b:2"
