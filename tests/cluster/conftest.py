"""A cluster for all tests of this room, and a lake on it for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from rivermouth.local.s3 import LocalS3
from rivermouth.local.standalone import LocalCluster
from tests.cluster.lake import ClusterLake, overcommitted


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """One master and two workers, on which several drivers find room."""
    with overcommitted() as running:
        yield running


@pytest.fixture
def clustered(
    tmp_path: Path, rivermouth_broker: Broker, rivermouth_store: LocalS3, cluster: LocalCluster
) -> ClusterLake:
    """An empty lake of the test's own."""
    return ClusterLake(
        tmp_path,
        rivermouth_broker.bootstrap_servers,
        store=rivermouth_store,
        prefix=f"of/{tmp_path.name}",
        cluster=cluster,
    )
