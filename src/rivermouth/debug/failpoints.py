"""Named points at which a test or the demo kills the process. Off unless the environment asks.

``RIVERMOUTH_FAILPOINTS="P6=kill"`` kills the process at point P6; ``P6=3*kill`` kills it when it
passes P6 for the third time. The points, in the order of a run:

P0 before the ledger is read · P10 offsets table up to date, nothing planned yet ·
P1 batch begun, Spark has written ``offsets/N`` · P2 batch planned · P3 before the write ·
P12 bad records written ahead · P13 rows to delete are marked · P6 the write returned ·
P7 commit read back · P8 its entry is in the offsets table, written beside the next batches ·
P9 the batch has ended, for Spark, too (``commits/N``) ·
P16 a batch's files are written, and no commit names them · P17 before the commit that names them ·
P18 that commit is made, and a checkpoint that is due is not ·
P11 before the stop · P14 before the rows of a batch are sent to a sink · P15 all of them were sent
"""

from __future__ import annotations

import os
import signal
from collections import Counter

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
