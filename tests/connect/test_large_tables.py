"""A few changes by key of tables with many rows, through Spark Connect: Spark takes the rows to be
for as many as changes times rows of the table, and plans another join than for a small one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.config import load
from rivermouth.local.broker import Broker
from rivermouth.testing import Record
from rivermouth.verification import verify
from tests.connect.lake import ConnectLake
from tests.connect.server import ConnectServer
from tests.modes import MODES, Mode
from tests.processes import said_by

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

BY_KEY = ("upsert", "insert", "sums")
ROWS, CHANGES = 5_000, 200


@pytest.mark.thorough
def test_changes_by_key_reach_tables_of_many_rows(
    rivermouth_broker: Broker, connect_server: ConnectServer, tmp_path: Path
) -> None:
    lake = ConnectLake(tmp_path, rivermouth_broker.bootstrap_servers, connect_server, "standard")
    modes = {name: MODES[name] for name in BY_KEY}
    for name in modes:
        lake.topic(f"many-{name}")
    lake.describe(**{name: mode.pipeline(f"many-{name}") for name, mode in modes.items()})

    for first, last in ((0, ROWS), (ROWS - CHANGES // 2, ROWS + CHANGES // 2)):
        for name, mode in modes.items():
            lake.produce(f"many-{name}", records(mode, first, last))
        with lake.connected(*modes) as driver:
            said = said_by(driver)
        assert driver.returncode == 0, said

    for proof in verify(load(lake.file)).pipelines:
        assert proof.ok, proof
        assert proof.records == ROWS + CHANGES


def records(mode: Mode, first: int, last: int) -> Iterator[Record]:
    """One of each key; where there are tombstones, each fourth key that is there again has one."""
    for key in range(first, last):
        gone = mode.tombstones and first > 0 and key < ROWS and key % 4 == 0
        yield str(key).encode(), None if gone else mode.good(key, first, key % 3600), 0
