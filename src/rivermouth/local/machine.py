"""What this process may use of the machine, and how much of it the JVM of a session gets.

Spark reads each partition by a consumer of its own and keeps it for the next batch. Each consumer
keeps what it knows of all partitions of its topic, so the memory grows with their square. Measured
with 2,000 partitions (Kafka client 3.9): 4,000,000 such facts of 0.55 KB, and 0.36 MB of a consumer
with the records that it has fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def memory_mb(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """The memory that this process may use; 0 where the system does not tell."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0
    v1 = groups / "memory" / "memory.limit_in_bytes"
    files = [v1, *(each / "memory.max" for each in _folders(groups, own))]
    limits = [int(text) for text in map(_text, files) if text.isdigit()]
    return min([physical, *limits]) >> 20


def cores(groups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """The cores that this process may use, at least one."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        found = os.cpu_count() or 1
    for each in _folders(groups, own):
        quota, _, period = _text(each / "cpu.max").partition(" ")
        if quota.isdigit() and period.isdigit():
            found = min(found, int(quota) // int(period))
    return max(1, found)


def _folders(groups: Path, own: Path) -> Iterator[Path]:
    """The control groups of this process, from its own up to the root."""
    lines = _text(own).splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::/")), "/")
    folder = groups / path.strip("/")
    yield folder
    yield from (each for each in folder.parents if each.is_relative_to(groups))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


BASE_MB = 2048
"""What Spark, Delta and a batch need."""
MEMORY, CAPACITY = "spark.driver.memory", "spark.kafka.consumer.cache.capacity"
_EXECUTOR_MB = 512
"""What an executor needs beside its consumers."""
_MB_PER_CONSUMER = 0.4
_MB_PER_FACT = 0.7 / 1024
_SPARE = 1.25
"""So many times as many consumers are kept as there are partitions: some may be added."""
_AT_LEAST = 64
_UNKNOWN = 500
"""So many consumers fit into ``BASE_MB``, where nobody knows how many partitions there are."""
_MEMORY = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_KB = {"k": 1, "m": 1 << 10, "g": 1 << 20, "t": 1 << 30, "": 1 << 10}


def heap_settings(
    partitions: Sequence[int] | None, machine_mb: int, given: str = ""
) -> dict[str, str]:
    """Settings of a session.

    ``partitions``: how many each topic of each pipeline has; None: not known. The heap takes at
    most half of the machine's memory, but never less than 2 GB; ``given`` is what the file says
    instead. Where that is too little, fewer consumers are kept: batches connect anew, and are slow
    instead of failing. The number that is kept has a limit in any case: a pipeline that is opened
    again makes new ones, and those of before would stay for minutes.
    """
    wanted = sum(
        _SPARE * each * (_MB_PER_CONSUMER + each * _MB_PER_FACT) for each in partitions or ()
    )
    limit = _mb(given) if given else machine_mb // 2
    room = max(0, limit - BASE_MB)
    share = min(1.0, room / wanted) if wanted else 1.0
    known = _AT_LEAST + int(_SPARE * sum(partitions or ()) * share)
    consumers = _UNKNOWN if partitions is None else known
    return {MEMORY: given or f"{BASE_MB + int(wanted * share)}m", CAPACITY: str(consumers)}


def cache_settings(partitions: Sequence[int] | None, memory: str) -> dict[str, str]:
    """How many consumers each executor of a cluster keeps, with so much ``memory`` of its own.

    All partitions may come to one executor. ``partitions``: see ``heap_settings``.
    """
    wanted = _SPARE * sum(partitions or ())
    most = max(partitions or (0,))
    room = max(0, _mb(memory) - _EXECUTOR_MB) / (_MB_PER_CONSUMER + most * _MB_PER_FACT)
    known = _AT_LEAST + int(min(wanted, room))
    return {CAPACITY: str(_UNKNOWN if partitions is None else known)}


def _mb(memory: str) -> int:
    """A size as Java writes it, in MB; what is not one is left to Spark to refuse."""
    found = _MEMORY.fullmatch(memory.strip())
    return int(found[1]) * _KB[found[2].lower()] >> 10 if found else BASE_MB
