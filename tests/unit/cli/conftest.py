"""The command in this process, and a configuration for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rivermouth.cli.app import main

CONFIG = """\
version: 1
kafka: {bootstrap.servers: "localhost:1"}
warehouse: ./lake
pipelines:
  bids:
    source: {topics: [bids], format: json}
    schema: "auction BIGINT, price BIGINT"
    target: {table: bronze.bids}
  orders:
    source: {topics: [orders], format: json}
    schema: "order_id BIGINT, status STRING"
    target: {table: silver.orders, mode: upsert, keys: [order_id]}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


Rivermouth = Callable[..., Ended]


@pytest.fixture
def rivermouth(capsys: pytest.CaptureFixture[str]) -> Rivermouth:
    """Runs the command with these arguments in this process."""

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        said = capsys.readouterr()
        return Ended(int(left.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def lake_yml(tmp_path: Path) -> Path:
    """A sound configuration whose broker does not exist."""
    file = tmp_path / "lake.yml"
    file.write_text(CONFIG, encoding="utf-8")
    return file
