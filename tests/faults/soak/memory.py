"""The resident memory of a driver and its JVM, over time, and whether it is flat."""

from __future__ import annotations

import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

EVERY_S = 5.0


@dataclass(frozen=True)
class Sample:
    """Resident memory in MB, so many seconds after the start; 0 where the process is not there."""

    at_s: float
    python_mb: float
    jvm_mb: float

    @property
    def mb(self) -> float:
        return self.python_mb + self.jvm_mb


class Watch:
    """Samples the processes of a group until the block ends."""

    def __init__(self, group: Callable[[], int]) -> None:
        self.samples: list[Sample] = []
        self._group = group
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(EVERY_S):
            found = resident_mb(self._group())
            at = time.monotonic() - self._began
            self.samples.append(Sample(at, found.get("python", 0.0), found.get("java", 0.0)))


def resident_mb(group: int) -> dict[str, float]:
    """Resident MB of the Python and Java processes of a group."""
    command = ["ps", "-A", "-o", "pgid=,rss=,comm="]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {"python": 0.0, "java": 0.0}
    for line in shown.splitlines():
        pgid, kilobytes, name = line.split(None, 2)
        if int(pgid) == group:
            kind = "java" if name.startswith("java") else "python"
            found[kind] += int(kilobytes) / 1024
    return found


def growth(samples: Sequence[Sample], whole_s: float) -> float:
    """The mean of the last quarter divided by that of the quarter before it."""
    third = [each.mb for each in samples if 0.5 <= each.at_s / whole_s < 0.75]
    fourth = [each.mb for each in samples if 0.75 <= each.at_s / whole_s <= 1.0]
    return statistics.mean(fourth) / statistics.mean(third)
