"""What a run refuses of its configuration before it touches a table."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.config.platforms import SERVERLESS
from rivermouth.config.secret import unresolved
from rivermouth.errors import UpsertUnsupported
from rivermouth.run.assembly import Assembly
from rivermouth.warehouse.ports import ATTEMPTS
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
    shared = Assembly.of(config, NO_SESSION, tmp_path, SERVERLESS, unresolved)
    with pytest.raises(UpsertUnsupported, match="only one pipeline") as refused:
        landing_of(shared.site(config.pipelines["a"], ExitStack(), ATTEMPTS), SERVERLESS)
    assert "b, which could replace" in refused.value.found
