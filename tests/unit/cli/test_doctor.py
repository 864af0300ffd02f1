"""``doctor``: what it looks at, with a configuration and without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.config import unresolved
from rivermouth.operate.doctor import Check, check_config
from tests.unit.cli.conftest import Rivermouth

pytestmark = pytest.mark.unit

EVENTS = """\
version: 1
kafka: {bootstrap.servers: "127.0.0.1:1"}
warehouse: ./lake
pipelines:
  p:
    source:
      topics: [t]
      format: avro
      schema_file: event.avsc
      envelope: {op: op, data: after, delete_when: [d]}
    schema: id BIGINT
    target: {table: s.t, mode: upsert, keys: [id]}
"""


@pytest.mark.parametrize(("named", "sets"), [(True, ["spark"]), (False, ["spark", "broker"])])
def test_the_jars_of_our_broker_are_only_for_the_demo(
    rivermouth: Rivermouth,
    lake_yml: Path,
    monkeypatch: pytest.MonkeyPatch,
    named: bool,
    sets: list[str],
) -> None:
    asked: list[str] = []

    def none(*_: object) -> Iterator[Check]:
        yield from ()

    def kept(name: str, **_: object) -> tuple[Path, ...]:
        asked.append(name)
        return ()

    monkeypatch.setattr("rivermouth.operate.doctor.jars", kept)
    monkeypatch.setattr("rivermouth.operate.doctor.check_config", none)

    file = lake_yml.rename(lake_yml.with_name("my lake.yml"))
    ended = rivermouth("doctor", *([file] if named else []))

    assert asked == sets
    following = f"run '{file}'" if named else "demo"
    assert ended.out.splitlines()[-1] == f"OK. Next: rivermouth {following}"


def test_the_remedy_of_a_bad_file_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    [check] = check_config(tmp_path / "my lake.yml", unresolved)
    assert check.fix == f"rivermouth validate '{tmp_path}/my lake.yml'"


def test_a_schema_of_events_is_compared_with_what_is_read_of_them(tmp_path: Path) -> None:
    row = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
    fields = [{"name": "op", "type": "string"}, {"name": "after", "type": ["null", row]}]
    schema = {"type": "record", "name": "Event", "fields": fields}
    (tmp_path / "event.avsc").write_text(json.dumps(schema))
    file = tmp_path / "lake.yml"
    file.write_text(EVENTS, encoding="utf-8")
    checks = check_config(file, unresolved)
    found = next(each for each in checks if each.name == "schemas of p")
    assert found.ok, found
