"""Drivers of a test's own: their processes, and their end, however the test goes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lake import Lake


@contextmanager
def driver(lake: Lake, *names: str) -> Iterator[subprocess.Popen[str]]:
    """A continuous driver with a JVM of its own; both are killed at the end of the block."""
    process = lake.driver(names, continuous=True)
    try:
        yield process
    finally:
        for each in processes(process.pid):
            os.kill(each, signal.SIGKILL)
        process.communicate()


def processes(group: int) -> dict[int, str]:
    """The command lines in a group of processes, by process id."""
    command = ["ps", "-A", "-ww", "-o", "pid=,pgid=,args="]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in shown.splitlines()]
    return {int(pid): " ".join(args) for pid, pgid, *args in lines if int(pgid) == group}


def jvm_of(process: subprocess.Popen[str]) -> int:
    """The JVM of a driver that has opened a pipeline."""
    [jvm] = (pid for pid, args in processes(process.pid).items() if "java" in args.split()[0])
    return jvm
