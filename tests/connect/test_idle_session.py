"""A Spark Connect server ends a session that asks nothing; one that waits with us stays."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from rivermouth.source import driver_planned
from rivermouth.source.driver_planned import KeepAlive
from tests.connect.server import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

SESSIONS = "spark.connect.session.manager"
SHORT = {f"{SESSIONS}.defaultSessionTimeout": "4s", f"{SESSIONS}.maintenanceInterval": "1s"}
IDLE_S = 10.0


def test_a_session_outlives_an_idle_time_longer_than_the_server_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_planned, "ASK_S", 1.0)
    with ConnectServer(tmp_path / "server", SHORT) as server:
        idle = SparkSession.builder.remote(server.url).create()
        assert idle.range(3).count() == 3
        waiting = SparkSession.builder.remote(server.url).create()
        began = time.monotonic()
        KeepAlive(cast(Any, waiting)).wait(IDLE_S, threading.Event())
        assert time.monotonic() - began >= IDLE_S
        assert waiting.range(3).count() == 3
        with pytest.raises(PySparkException, match=r"INVALID_HANDLE\.SESSION"):
            idle.range(3).count()
        for each in (idle, waiting):  # a client outlives no server quietly
            each.stop()
