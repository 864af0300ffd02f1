"""The columns of pipelines whose file does not name them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, load
from rivermouth.config.secret import Secrets
from rivermouth.errors import ConfigError
from rivermouth.operate.columns import columns_of
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.actions import Commit
from rivermouth.write.files.table import FilesTable

pytestmark = pytest.mark.unit

ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "record", "name": "At", "fields": []}},
    ],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}
EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "op", "type": "string"},
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Row"]},
        {"name": "source", "type": SOURCE},
    ],
}
FILE = """\
version: 1
kafka: {bootstrap.servers: "k:9092"}
schema_registry: {url: "http://127.0.0.1:9"}
warehouse: ./lake
pipelines:
  p:
    source: {topics: [t], format: avro, %s}
    target: {table: s.t%s}
    columns: %s
"""
UPSERT = ", mode: upsert, keys: [id]"
OF_A_FILE = "schema_file: row.avsc"


def no_secrets() -> Secrets:
    raise AssertionError("no registry is asked")


def loaded(folder: Path, source: str, target: str = "", columns: str = "{}") -> Config:
    (folder / "row.avsc").write_text(json.dumps(ROW))
    (folder / "event.avsc").write_text(json.dumps(EVENT))
    file = folder / "rivermouth.yml"
    file.write_text(FILE % (source, target, columns), encoding="utf-8")
    return load(file, columns_of=partial(columns_of, secrets=no_secrets))


def columns(config: Config) -> dict[str, str]:
    return {e.name: e.type + " NOT NULL" * e.required for e in config.pipelines["p"].columns}


CASES: list[tuple[str, str, str, dict[str, str]]] = [
    (OF_A_FILE, "", "{}", {"id": "BIGINT", "name": "STRING"}),
    (
        OF_A_FILE,
        "",
        "{called: {from: name}, twice: {from: id}}",
        {"called": "STRING", "twice": "BIGINT"},
    ),
    (
        "schema_file: event.avsc, envelope: debezium",
        UPSERT,
        "{lsn: {from: $.source.lsn}}",
        {"id": "BIGINT", "name": "STRING", "lsn": "BIGINT"},
    ),
    (
        "schema_file: event.avsc, envelope: debezium",
        "",
        "{}",
        {"id": "BIGINT", "name": "STRING", "_op": "STRING"},
    ),
    (
        "schema_file: event.avsc, envelope: debezium, on_delete: row",
        UPSERT,
        "{}",
        {"id": "BIGINT", "name": "STRING", "_op": "STRING"},
    ),
]


@pytest.mark.parametrize(("source", "target", "paths", "expected"), CASES)
def test_columns_are_those_of_the_schema_in_a_file(
    tmp_path: Path, source: str, target: str, paths: str, expected: dict[str, str]
) -> None:
    assert columns(loaded(tmp_path, source, target, paths)) == expected


def field(name: str, kind: Any, *, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def test_a_table_that_is_there_has_them_and_no_registry_is_asked(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [field("a-b", "integer")]}
    fields = [field("id", "long", nullable=False), field("x", inner), field("_kafka", "string")]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"id": "i", "schemaString": schema, "partitionColumns": [], "configuration": {}}
    metadata["format"] = {"provider": "parquet", "options": {}}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    table = FilesTable(Store.of_folder(tmp_path / "lake" / "s" / "t"), "t")
    table.log.commit(
        Commit("CREATE TABLE", definition=[{"protocol": protocol}, {"metaData": metadata}])
    )
    found = columns(loaded(tmp_path, "framing: confluent"))
    assert found == {"id": "BIGINT NOT NULL", "x": "STRUCT<`a-b`: INT>"}


FAULTS: list[tuple[str, str, str, str]] = [
    (OF_A_FILE, "", "{x: {from: gone}}", "has no columns: its records have no gone"),
    (OF_A_FILE, "", "{id: {as: s}}", "has no columns: only schema tells the types"),
    (OF_A_FILE, ", mode: upsert, keys: [no]", "{}", "is not a column of schema"),
    (
        OF_A_FILE,
        ", mode: aggregate, keys: [id], metrics: {n: count()}",
        "{}",
        "lacks the key schema",
    ),
]


@pytest.mark.parametrize(("source", "target", "paths", "why"), FAULTS)
def test_without_columns_the_file_is_refused(
    tmp_path: Path, source: str, target: str, paths: str, why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, source, target, paths)
    assert any(why in each for each in caught.value.problems), caught.value.problems


def test_a_schema_file_that_is_broken_is_a_problem_among_others(tmp_path: Path) -> None:
    (tmp_path / "bad.avsc").write_text("{nope")
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, "schema_file: bad.avsc, max_offsets_per_trigger: none")
    text = "\n".join(caught.value.problems)
    assert "schema is not JSON" in text
    assert "max_offsets_per_trigger" in text
