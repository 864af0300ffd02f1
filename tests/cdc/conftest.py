"""A database whose changes come into topics, and a lake beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from tests.cdc.postgres import Postgres
from tests.lake import Lake


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with Postgres() as found:
        yield found


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker) -> Lake:
    return Lake(tmp_path, rivermouth_broker.bootstrap_servers)
