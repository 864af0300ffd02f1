"""A worker of the benchmarks (``worker.py``): a process of its own with its own JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Peer:
    """A worker process, which gets one order at a time.

    ``partitions``: the most that a topic has, by which the product sizes its session.
    """

    def __init__(self, role: str, partitions: int = 0) -> None:
        self.role = role
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), role, str(partitions)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def drain(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Send one order and return its answer, with its CPU-seconds as ``cpu``."""
        assert self._process.stdin
        assert self._process.stdout
        before = cpu_seconds(self._process.pid)
        self._process.stdin.write(json.dumps({**order}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.role} ended with {self._process.wait()}")
        return {**json.loads(answer), "cpu": cpu_seconds(self._process.pid) - before}

    def close(self) -> None:
        """End the worker."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its living descendants and its ended children."""
    try:
        tasks = [each / "children" for each in Path(f"/proc/{pid}/task").iterdir()]
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        children = [child for each in tasks if each.exists() for child in each.read_text().split()]
    except FileNotFoundError:  # a thread or process has ended meanwhile
        return cpu_seconds(pid) if Path(f"/proc/{pid}").exists() else 0.0
    own = sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for child in children)


def peak_mb(pid: int | str = "self") -> float:
    """The most memory that a process has had, without its children; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) / 1024 if found else 0.0
