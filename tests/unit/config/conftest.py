"""How the tests of this room write a file and read it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rivermouth.config import Config, load
from rivermouth.errors import ConfigError

Loads = Callable[..., Config]
Problems = Callable[..., list[str]]

LAKE = """\
version: 1
kafka: {bootstrap.servers: "k:9092"}
warehouse: lake
pipelines:
  p:
    source: {topics: [t], format: json}
    schema: id BIGINT, at TIMESTAMP
    target: {table: s.t}
"""


@pytest.fixture
def loads(tmp_path: Path) -> Loads:
    def from_text(text: str, environ: Mapping[str, str] | None = None) -> Config:
        file = tmp_path / "lake.yml"
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        return load(file, environ or {})

    return from_text


@pytest.fixture
def problems(loads: Loads, tmp_path: Path) -> Problems:
    def of_text(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
        with pytest.raises(ConfigError) as refused:
            loads(text, environ)
        return [line.replace(f"{tmp_path}/", "") for line in refused.value.problems]

    return of_text


@pytest.fixture
def lake() -> str:
    """A small sound file, to be changed in one place."""
    return LAKE
