"""Where the JVM and its Python workers meet, and how a session is stopped with its block."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import cast

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from rivermouth.local.session import ending, worker_sockets

pytestmark = pytest.mark.unit

NAME = ".01234567-89ab-cdef-0123-456789abcdef.sock"


@pytest.mark.parametrize(
    ("folder", "enabled"),
    [
        ("/tmp/rivermouth-1000/py-0123456789abcdef0123456789abcdef", "true"),
        ("/" + "x" * 59, "true"),
        ("/" + "x" * 60, "false"),
        ("/" + "ö" * 30, "false"),
    ],
)
def test_a_path_too_long_for_a_socket_leaves_loopback(folder: str, enabled: str) -> None:
    assert worker_sockets(Path(folder)) == {
        "spark.python.unix.domain.socket.enabled": enabled,
        "spark.python.unix.domain.socket.dir": folder,
    }


def test_the_longest_path_that_is_taken_is_one_of_a_socket() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        folder = Path(short, "x" * (60 - len(short) - 1))
        folder.mkdir()
        assert worker_sockets(folder)["spark.python.unix.domain.socket.enabled"] == "true"
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(folder / NAME))


class Session:
    def __init__(self, fault: Exception | None = None) -> None:
        self.stops = 0
        self._fault = fault

    def stop(self) -> None:
        self.stops += 1
        if self._fault is not None:
            raise self._fault


@pytest.mark.parametrize(
    "fault",
    [
        ConnectionRefusedError(111, "Connection refused"),
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("SparkSession does not exist in the JVM"),
        None,
    ],
    ids=repr,
)
def test_a_jvm_that_is_gone_has_ended_already(fault: Exception | None) -> None:
    session = Session(fault)
    with ending(cast(SparkSession, session)):
        assert session.stops == 0
    assert session.stops == 1


def test_what_the_block_raises_is_told() -> None:
    session = Session(ConnectionRefusedError(111, "Connection refused"))
    with pytest.raises(ValueError, match="of the block"), ending(cast(SparkSession, session)):
        raise ValueError("of the block")
