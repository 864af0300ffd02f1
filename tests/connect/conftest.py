"""A Connect server for all tests here, and a lake on it for each module's kind of platform."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connect.server import ConnectServer


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as running:
        yield running
