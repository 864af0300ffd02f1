"""A driver process and its JVM, as the nemesis sees them: ordered, watched, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.faults.campaign.calls import CallControl
from tests.processes import ROOT


class DriverProcess:
    """One ``tests.faults.campaign.driver`` in a process group of its own.

    ``file`` is the configuration. ``preloaded`` is the library that counts its ``calls`` (see
    ``calls``); None: they are not. ``host`` tells of the JVM in which it works, see
    ``tests.attached``; empty: it has its own.
    """

    def __init__(
        self,
        folder: Path,
        file: Path,
        log: Path,
        preloaded: Path | None,
        host: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        folder.mkdir(parents=True)
        self.calls = CallControl(folder / "calls")
        self.counts_calls = preloaded is not None
        watched = self.calls.environment(preloaded) if preloaded else {}
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.campaign.driver", str(folder), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={**os.environ, **watched, **host},
            cwd=ROOT,
        )
        assert self._process.stdout
        os.set_blocking(self._process.stdout.fileno(), False)
        self._said = b""
        self._jvm = 0

    def await_session(self) -> None:
        """Wait until its Spark session is up."""
        if not self._jvm:
            answer = self.answer(120)
            if answer is None:
                raise RuntimeError(f"the driver did not come up, see {self._log.name}")
            self._jvm = int(answer["jvm"])

    def order(self, order: dict[str, Any]) -> None:
        """Give one order, once the session is up."""
        self.await_session()
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def answer(
        self, timeout_s: float, meanwhile: Callable[[], bool] = lambda: False
    ) -> dict[str, Any] | None:
        """The next line it says; None where it dies first, or says nothing in time.

        ``meanwhile`` is called about every two milliseconds; True ends the waiting.
        """
        deadline = time.monotonic() + timeout_s
        assert self._process.stdout
        while time.monotonic() < deadline:
            with suppress(BlockingIOError):
                self._said += self._process.stdout.read() or b""
            line, end, rest = self._said.partition(b"\n")
            if end:
                self._said = rest
                if line.startswith(b"{"):
                    return dict(json.loads(line))
                self._log.write(line + end)  # the JVM's: standard output is its too
                continue
            if not self.alive:
                return None
            if meanwhile():
                return None
            time.sleep(0.002)
        return None

    @property
    def alive(self) -> bool:
        """Whether both Python and its JVM live."""
        return self._process.poll() is None and (not self._jvm or _lives(self._jvm))

    def signal(self, number: int, *, python_only: bool = False) -> None:
        """Send a signal to Python and the JVM, or to Python alone."""
        with suppress(ProcessLookupError):
            if python_only:
                os.kill(self._process.pid, number)
            else:
                os.killpg(self._process.pid, number)

    def end(self) -> None:
        """Make sure that nothing of it is left."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self._process.wait()
        if self._jvm:
            while _lives(self._jvm):
                time.sleep(0.005)
        for each in (self._process.stdin, self._process.stdout, self._log):
            with suppress(OSError):
                if each is not None:
                    each.close()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"
