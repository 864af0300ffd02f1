"""What a driver does, step by step, as JSON lines: for proof and post-mortem, off by default.

``RIVERMOUTH_TRACE=FILE`` appends one object per step to FILE, each in one write, so that
several processes may share it. Every object has ``at`` (ms since 1970), ``process`` (one id
per process), ``pipeline`` and ``step``; the steps, in their order, and what they say:

open      version, sequence, standing, position, projected: the ledger as read, guards passed
plan      kind (batch births loss restamp resume), sequence, ranges: decided to proceed
write     sequence, commit, ranges, position: about to write
returned  commit, fault (null or text): the write returned or raised
read_back commit, outcome, version: judged on the log up to version
project   sequence: the offsets table stands there
halt      code: a guard stopped the pipeline
close     the pipeline ended well
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable
from typing import Any

from rivermouth.protocol.offsets import OffsetRange

_PROCESS = uuid.uuid4().hex[:12]


def step(pipeline: str, name: str, **facts: Any) -> None:
    """Note one step of a pipeline; does nothing unless the environment asks for it."""
    file = os.environ.get("RIVERMOUTH_TRACE")
    if not file:
        return
    at = int(time.time() * 1000)
    said = {"at": at, "process": _PROCESS, "pipeline": pipeline, "step": name, **facts}
    line = json.dumps(said, separators=(",", ":")) + "\n"
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def listed(ranges: Iterable[OffsetRange]) -> list[list[object]]:
    """Ranges as a trace shows them: ``[topic, partition, from, until]``."""
    return [[each.topic, each.partition, each.from_offset, each.until_offset] for each in ranges]
