"""A guarded broker for all tests of logins, and a lake that logs in there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rivermouth.config import Config, load
from tests.lake import Lake, append_pipeline
from tests.logins.guarded_broker import GuardedBroker, guarded_broker
from tests.logins.ways import environ, section, token_file, write_provider


@dataclass
class GuardedLake(Lake):
    """A lake whose configuration logs in; topics are filled where everybody may."""

    guarded: GuardedBroker

    def log_in(self, kafka: Mapping[str, str], *topics: str, retry_for: str = "20s") -> Config:
        """Configure an append pipeline per topic, with this section ``kafka``."""
        text: dict[str, Any] = {
            "version": 1,
            "kafka": kafka,
            "warehouse": "./lake",
            "trigger": "200ms",
            "retry": {"for": retry_for, "up_to": "2s"},
            "pipelines": {each.replace("-", "_"): append_pipeline(each) for each in topics},
        }
        self.file.write_text(json.dumps(text), encoding="utf-8")
        return load(self.file)

    def log_in_by(self, way: str, *topics: str) -> Config:
        return self.log_in(section(way, self.guarded), *topics)


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture
def lake(tmp_path: Path, guarded: GuardedBroker, monkeypatch: pytest.MonkeyPatch) -> GuardedLake:
    """An empty one; what the examples of the page name is there. Name topics apart."""
    for name, text in environ(guarded).items():
        monkeypatch.setenv(name, text)
    token_file(guarded).write_text(guarded.tokens.token(), encoding="utf-8")
    write_provider(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_package", raising=False)
    monkeypatch.delitem(sys.modules, "my_package.logins", raising=False)
    return GuardedLake(tmp_path, guarded.broker.bootstrap_servers, guarded)
