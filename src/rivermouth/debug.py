"""Steps of a driver as JSON lines, and points at which a test kills it. Off by default.

``RIVERMOUTH_FAILPOINTS="P6=kill"`` kills the process at point P6; ``P6=3*kill`` kills it when it
passes P6 for the third time. The points, in the order of a run:

P0 before the ledger is read · P10 offsets table up to date, nothing planned yet ·
P1 batch begun, Spark has written ``offsets/N`` · P2 batch planned · P3 before the write ·
P12 bad records written ahead · P6 the write returned · P7 commit read back ·
P13 rows to delete are marked · P8 its entry is in the offsets table, written beside the next
batches · P9 the batch has ended, for Spark, too (``commits/N``) ·
P19 the files of a batch by key are written, and no deletion vector is ·
P16 a batch's files are written, and no commit names them · P17 before the commit that names them ·
P18 that commit is made, and a checkpoint that is due is not · P22 the index does not know of it ·
P20 the files of a compaction are written, and no commit names them · P21 that commit is made, and
the index does not know of it ·
P11 before the stop · P14 before the rows of a batch are sent to a sink · P15 all of them were sent

``RIVERMOUTH_TRACE=FILE`` appends one object per step to FILE, each in one write, so several
processes may share the file. Every object has ``at`` (ms since 1970), ``process`` (one id per
process), ``pipeline`` and ``step``. The steps in their order, with their other fields:

open      version, sequence, standing, position, projected: the ledger was read, guards passed;
          of a command also accept (what it was told to accept) and versions (of DELETEs)
plan      kind (batch discovery loss heartbeat resume replay), sequence, ranges, beside: a commit
          was planned; beside says whether Kafka is asked while the batch is staged
write     sequence, commit, ranges, position: the write begins
see       commit, again: Kafka has answered; again says that the batch is staged anew
send      commit: the records of that batch are sent, before its commit or once it was read back
sent      commit: the sink has acknowledged all of them
returned  commit, fault (null or text): the write returned or raised
read_back commit, outcome, version: the log was read up to version
project   sequence: the offsets table holds the entries up to it
halt      code: a guard stopped the pipeline
close     the pipeline ended without an error
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rivermouth.protocol.offsets import OffsetRange

_passed: Counter[str] = Counter()


def reach(point: str) -> None:
    """Pass ``point``: kill the process if the environment asks for it there."""
    asked = os.environ.get("RIVERMOUTH_FAILPOINTS")
    if not asked:
        return
    _passed[point] += 1
    for each in asked.split(","):
        name, _, action = each.partition("=")
        times, _, what = action.rpartition("*")
        if name == point and what == "kill" and _passed[point] == int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)


_PROCESS = uuid.uuid4().hex[:12]


def step(pipeline: str, name: str, **facts: Any) -> None:
    """Write one step of a pipeline; does nothing unless the environment asks for it.

    A fact that is dear to make is given as a function without parameters, which is called only
    then.
    """
    file = os.environ.get("RIVERMOUTH_TRACE")
    if not file:
        return
    at = int(time.time() * 1000)
    made = {key: fact() if callable(fact) else fact for key, fact in facts.items()}
    fields = {"at": at, "process": _PROCESS, "pipeline": pipeline, "step": name, **made}
    line = json.dumps(fields, separators=(",", ":")) + "\n"
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def listed(ranges: Sequence[OffsetRange]) -> Callable[[], list[list[object]]]:
    """What makes a list of ``[topic, partition, from, until]`` of the ranges."""
    return lambda: [[e.topic, e.partition, e.from_offset, e.until_offset] for e in ranges]
