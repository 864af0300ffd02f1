"""``docs/configuration.md`` names every setting, and its examples load."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config import Config
from rivermouth.config.columns import parse_columns
from rivermouth.config.settings import keys_of
from tests.unit.config.examples import FILES, TEXT
from tools.configuration_tables import MARKED, TABLES, page

SCHEMAS = re.findall(r"^```sql\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
KEYS = {key for section in TABLES.values() for key in keys_of(section)}
VARIABLES = ("USER", "PASSWORD", "CERTIFICATE", "KEY", "CLIENT_SECRET")
PROTO = 'syntax = "proto3"; package shop; message Order { int64 order_id = 1; }'
ENVIRON = {f"KAFKA_{each}": "x" for each in VARIABLES}


def test_the_page_has_examples() -> None:
    assert len(FILES) >= 4
    assert len(SCHEMAS) >= 1


@pytest.mark.parametrize("text", FILES)
def test_every_example_of_a_file_loads(
    text: str, loads: Callable[..., Config], tmp_path: Path
) -> None:
    (tmp_path / "order.proto").write_text(PROTO, encoding="utf-8")
    config = loads(text, ENVIRON)
    assert config.pipelines
    told = config.without_secrets()
    assert pickle.loads(pickle.dumps(told)) == told, "workers of verify get a copy"
    assert not told.kafka.secret_names
    assert told.kafka.bootstrap_servers == config.kafka.bootstrap_servers


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_example_of_a_schema_is_read(schema: str) -> None:
    assert parse_columns(schema)


def test_the_tables_of_keys_are_those_of_the_models() -> None:
    assert {match[2] for match in MARKED.finditer(TEXT)} == {*TABLES, "Catalog"}
    assert page(TEXT) == TEXT, "run: python tools/configuration_tables.py"


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_and_alias_is_described(key: str) -> None:
    assert f"`{key}`" in TEXT
