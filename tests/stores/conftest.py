"""A lake in the common store, for each test its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from tests.stores.lake import StoredLake
from tests.stores.servers import STORES


@pytest.fixture(scope="session")
def rivermouth_store(pytestconfig: pytest.Config) -> Iterator[LocalS3]:
    """The common store: the one that ``--store`` names."""
    with STORES[pytestconfig.option.store]() as store:
        yield store


@pytest.fixture
def stored(tmp_path: Path, rivermouth_broker: Broker, rivermouth_store: LocalS3) -> StoredLake:
    """An empty lake of the test's own in the common store."""
    servers = rivermouth_broker.bootstrap_servers
    return StoredLake(tmp_path, servers, store=rivermouth_store, prefix=f"of/{tmp_path.name}")
