"""The resident memory of a driver and its JVM, over time, and whether it is flat."""

from __future__ import annotations

import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rivermouth.local.java import find_java
from tests.processes import listed

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
    """Resident MB of the Python and Java processes of a group.

    Others are left out: what the JVM starts is its copy for a moment, named after a thread.
    """
    found = {"python": 0.0, "java": 0.0}
    for _, pgid, kilobytes, name in listed("pgid", "rss", "comm"):
        if int(pgid) == group:
            for kind in found:
                if name.startswith(kind):
                    found[kind] += int(kilobytes) / 1024
    return found


_USED = re.compile(r"^ *(?:PSYoungGen|ParOldGen) .*?used (\d+)K", re.MULTILINE)


def live_heap_mb(group: int) -> float:
    """MB of the heap that the JVM of a group holds when all garbage is collected."""
    [jvm] = (
        pid for pid, pgid, name in listed("pgid", "comm") if (pgid, name) == (str(group), "java")
    )
    jcmd = find_java().home / "bin" / "jcmd"

    def said(command: str) -> str:
        asked = [str(jcmd), jvm, command]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    said("GC.run")
    return used_mb(said("GC.heap_info"))


def used_mb(heap_info: str) -> float:
    """What is used, in the words of the parallel collector."""
    return sum(int(each) for each in _USED.findall(heap_info)) / 1024


def growth(samples: Sequence[Sample], whole_s: float) -> float:
    """The mean of the last quarter divided by that of the quarter before it."""
    third = [each.mb for each in samples if 0.5 <= each.at_s / whole_s < 0.75]
    fourth = [each.mb for each in samples if 0.75 <= each.at_s / whole_s <= 1.0]
    return statistics.mean(fourth) / statistics.mean(third)
