"""The records that a new project's test sends: each is good, and makes a row of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from rivermouth.config import load
from rivermouth.config.columns import SIMPLE, parse_columns
from rivermouth.databricks.project import samples
from rivermouth.formats.strict_json.decoder import StrictJson
from rivermouth.formats.strict_json.types import JsonSettings

pytestmark = pytest.mark.unit

PIPELINE = """
version: 1
kafka: {bootstrap.servers: "localhost:9092"}
warehouse: ./lake
pipelines:
"""


def written(tmp_path: Path, *pipelines: str) -> dict[str, list[str]]:
    file = tmp_path / "lake.yml"
    file.write_text(PIPELINE + "".join(f"  {each}\n" for each in pipelines), encoding="utf-8")
    return {name: text.splitlines() for name, text in samples(load(file)).items()}


@pytest.mark.parametrize("kind", [*SIMPLE, "DECIMAL(12,2)", "DECIMAL(3,3)", "DECIMAL"])
def test_a_value_of_each_type_is_taken_and_none_is_like_the_other(
    tmp_path: Path, kind: str
) -> None:
    like = (
        f'a: {{source: {{topics: [a], format: json}}, schema: "v {kind}", target: {{table: b.a}}}}'
    )
    lines = written(tmp_path, like)["a"]
    decoder = StrictJson.of(parse_columns(f"v {kind}"), JsonSettings())
    decoded = decoder.decode(pa.array([each.encode() for each in lines], pa.binary()))
    assert decoded.reasons.null_count == len(lines)
    values = [each["v"] for each in decoded.rows.to_pylist()]
    assert None not in values
    assert len(set(values)) == len(values)


def test_two_pipelines_of_one_table_have_other_keys_and_what_is_not_plain_has_no_records(
    tmp_path: Path,
) -> None:
    read = "source: {topics: [a], format: json}, schema: 'id BIGINT, x ARRAY<INT>'"
    found = written(
        tmp_path,
        f"a: {{{read}, target: {{table: b.a}}}}",
        f"b: {{{read.replace('[a]', '[b]')}, target: {{table: b.a}}}}",
        f"c: {{{read}, select: 'id', target: {{table: b.c, schema: 'id BIGINT'}}}}",
        f"d: {{{read}, target: {{kafka: out}}}}",
        f"e: {{{read.replace('json', 'json, framing: confluent')}, target: {{table: b.e}}}}",
        f"f: {{{read.replace('json', 'json, envelope: debezium')}, target: {{table: b.f}}}}",
        f"g: {{{read}, columns: {{id: {{from: y.id}}}}, target: {{table: b.g}}}}",
    )
    assert found.keys() == {"a", "b"}
    assert [json.loads(each) for each in (*found["a"], *found["b"])] == [
        {"id": n} for n in (1, 2, 3, 4)
    ]
