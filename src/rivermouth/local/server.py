"""A server on this machine that ends with the process that started it, even if that is killed.

Servers listen on the loopback address only, on free ports.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rivermouth.errors import SetupError
from rivermouth.local import supervisor

HOST = "127.0.0.1"
# Below the range from which systems take the local ports of outgoing connections, so that a
# port stays free between two starts.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(besides: int = 0) -> int:
    while (port := random.choice(_PORTS)) == besides or not is_free(port):
        pass
    return port


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def alive(pid: int) -> bool:
    """Whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


Block = TypeVar("Block", bound="Running")


class Running(ABC):
    """What runs in a ``with`` block: it is started there, and closed at the end."""

    @abstractmethod
    def start(self) -> None:
        """Start it, and return when it answers."""

    @abstractmethod
    def close(self) -> None:
        """End it, and remove what nobody needs."""

    def __enter__(self: Block) -> Block:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Serving(Running):
    """One program that serves, and is told of by its log and its process id."""

    _server: Server

    @property
    def log(self) -> Path:
        """The file with the output of the program."""
        return self._server.log

    @property
    def pid(self) -> int:
        """The process id of the program; 0 while stopped."""
        return self._server.pid

    def stop(self) -> None:
        """End the program. Does nothing while stopped."""
        self._server.stop()


class Server:
    """One program. ``name`` and ``where`` are for people; ``log`` gets its output, and ``remove``
    is deleted if the owner of this process ends without a word.
    """

    def __init__(self, name: str, where: str, log: Path, remove: Path | None) -> None:
        self._name, self._where, self.log, self._remove = name, where, log, remove
        self._supervisor: subprocess.Popen[bytes] | None = None
        self.pid = 0
        """The process id of the program; 0 while stopped."""

    @property
    def running(self) -> bool:
        """Whether it was started and has not been stopped."""
        return self._supervisor is not None

    def start(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        ready: Callable[[], bool],
        timeout_seconds: float,
    ) -> None:
        """Start it and return once it is ``ready``. Raises SetupError."""
        self._launch(command, environ)
        deadline = time.monotonic() + timeout_seconds
        while not ready():
            if self._supervisor is None or self._supervisor.poll() is not None:
                self.stop()
                raise self.failed(f"the local {self._name} ended during its start")
            if time.monotonic() > deadline:
                self.stop()
                raise self.failed(f"the local {self._name} did not answer in time")
            time.sleep(0.05)

    def stop(self) -> None:
        """End the program cleanly. Does nothing while stopped."""
        if self._supervisor is not None:
            process, self._supervisor, self.pid = self._supervisor, None, 0
            try:
                process.communicate(b"stop", timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def must_start(self, port: int, ready: Callable[[], bool]) -> bool:
        """Whether it is not ``ready`` yet; what is left of an earlier start has ended then.

        Raises SetupError if somebody else listens at the port.
        """
        if self.running and ready():
            return False
        self.stop()  # a killed program leaves its supervisor
        if not is_free(port):
            raise SetupError(
                "the port is taken",
                where=self._where,
                remedy="Name another port, or none to get any free one",
            )
        return True

    def failed(self, what: str) -> SetupError:
        """The error of a start, with what the log says."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        errors = [line for line in lines if "ERROR" in line or "Exception" in line]
        found = (errors or lines)[0].strip()
        return SetupError(what, where=self._where, found=found, remedy=f"Read {self.log}")

    def _launch(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        remove = "" if self._remove is None else str(self._remove)
        supervised = [sys.executable, "-I", "-S", supervisor.__file__, str(os.getpid())]
        self._supervisor = subprocess.Popen(
            [*supervised, str(self.log), remove, *command],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to the owner alone, which then stops the server
        )
        assert self._supervisor.stdout is not None
        self.pid = int(self._supervisor.stdout.readline() or 0)
