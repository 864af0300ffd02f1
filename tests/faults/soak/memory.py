"""The resident memory of a driver and its JVM, over time, and whether it is flat."""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rivermouth.local.java import find_java
from tests.processes import listed
from tests.threads import repeating

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


@contextmanager
def sampled(group: Callable[[], int]) -> Iterator[list[Sample]]:
    """The memory of the processes of a group, until the block ends."""
    samples, began = list[Sample](), time.monotonic()

    def sample() -> None:
        found = resident_mb(group())
        samples.append(Sample(time.monotonic() - began, found["python"], found["java"]))

    with repeating(EVERY_S, sample):
        yield samples


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
