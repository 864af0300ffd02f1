"""Where the JVM and its Python workers meet: at files, if such a path has room for a socket."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from rivermouth.local.session import worker_sockets

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
