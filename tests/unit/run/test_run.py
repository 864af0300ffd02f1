"""What a run refuses of its configuration before it touches a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.errors import UpsertUnsupported
from rivermouth.registry.platforms import SERVERLESS
from rivermouth.run.assembly import Assembly
from rivermouth.warehouse.warehouse import warehouse_of
from rivermouth.write.landing import landing_of
from tests.doubles import NO_SESSION

pytestmark = pytest.mark.unit

SHARED = """
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: {catalog: main}
pipelines:
  a: {source: {topics: [t], format: json}, schema: id BIGINT, target: &to
    {table: s.orders, mode: upsert, keys: [id]}}
  b: {source: {topics: [u], format: json}, schema: id BIGINT, target: *to}
"""


def test_two_pipelines_upsert_into_one_table_only_by_merge(tmp_path: Path) -> None:
    """Nothing but MERGE sees what the other has committed since the rows were joined."""
    file = tmp_path / "lake.yml"
    file.write_text(SHARED, encoding="utf-8")
    config = load(file)
    run = Run(config, NO_SESSION, tmp_path, continuous=False, platform=SERVERLESS)
    with pytest.raises(UpsertUnsupported, match="only one pipeline") as refused:
        run._prepare_replace(config.pipelines["a"], Address(name=("main", "s", "orders")))
    assert "b, which could replace" in refused.value.found
