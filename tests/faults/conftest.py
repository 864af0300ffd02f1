"""Fixtures for tests that need a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.local.broker import Broker
from tests.lake import Lake


@pytest.fixture
def lake(tmp_path: Path, rivermouth_broker: Broker) -> Lake:
    """An empty lake of the test's own on the shared broker; name topics apart."""
    return Lake(tmp_path, rivermouth_broker.bootstrap_servers)
