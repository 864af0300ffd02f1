"""How much memory the JVM of a local session gets: by the partitions that its pipelines read.

Spark reads each partition by a consumer of its own and keeps it for the next batch. Each consumer
keeps what it knows of all partitions of its topic, so the memory grows with their square. Measured
with 2,000 partitions (Kafka client 3.9): 4,000,000 such facts of 0.55 KB, and 0.36 MB of a consumer
with the records that it has fetched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

BASE_MB = 2048
"""What Spark, Delta and a batch need."""
_MB_PER_CONSUMER = 0.4
_MB_PER_FACT = 0.7 / 1024
_KEPT = 1.25
"""So many times as many consumers are kept as there are partitions: some may be added."""
_AT_LEAST = 64
_LIMIT = Path("/sys/fs/cgroup/memory.max")


def heap_settings(partitions: Sequence[int], machine_mb: int) -> dict[str, str]:
    """Settings of a session. ``partitions``: how many each topic of each pipeline has.

    The heap takes at most half of the machine's memory, and what we always took. Where that is too
    little, fewer consumers are kept, so that batches connect anew and are slow instead of failing.
    The number that is kept has a limit in any case: a pipeline that is opened again makes new ones,
    and those of before would stay for minutes.
    """
    wanted = sum(_KEPT * each * (_MB_PER_CONSUMER + each * _MB_PER_FACT) for each in partitions)
    room = max(0, machine_mb // 2 - BASE_MB)
    share = min(1.0, room / wanted) if wanted else 1.0
    return {
        "spark.driver.memory": f"{BASE_MB + int(wanted * share)}m",
        "spark.kafka.consumer.cache.capacity": str(
            _AT_LEAST + int(_KEPT * sum(partitions) * share)
        ),
    }


def machine_mb() -> int:
    """The memory of this machine, or of the container in which this process is."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = int(_LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is none
        limit = physical
    return min(physical, limit) >> 20
