"""Spark's checkpoint of one run, read as plain files for the ranges of a micro-batch.

Nothing is ever resumed from it, so a lost, stale, corrupt or foreign checkpoint cannot
matter: each run has a fresh one, in a scratch folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rivermouth.errors import BatchFailed
from rivermouth.protocol.offsets import OffsetRange, Position
from rivermouth.protocol.starts import ranges_between


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint folder of one streaming query with one source."""

    path: Path

    def ranges(self, batch_id: int) -> tuple[OffsetRange, ...]:
        """The exact ranges of a micro-batch, as Spark wrote them down before it ran.

        The end is ``offsets/N``, the start ``offsets/N-1``; for batch 0 ``sources/0/0``.
        Raises BatchFailed where they cannot be read.
        """
        try:
            if batch_id == 0:
                before = _source_offsets(self.path / "sources" / "0" / "0")
            else:
                before = _logged_offsets(self.path / "offsets" / str(batch_id - 1))
            after = _logged_offsets(self.path / "offsets" / str(batch_id))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as fault:
            raise BatchFailed(
                "the checkpoint of this run cannot be read",
                where=str(self.path),
                found=repr(fault),
                remedy="Run again; let nothing clear the temporary folder during a run",
            ) from fault
        return ranges_between(before, after)


def _logged_offsets(file: Path) -> Position:
    """The offsets of the only source in an offset log file of format v1 or v2."""
    lines = file.read_text("utf-8").split("\n")
    text = lines[2]
    if lines[0] == "v2":
        text = text.split(":", 1)[1]
    elif lines[0] != "v1":
        raise ValueError(f"offset log format {lines[0]!r} is not v1 or v2")
    return Position.from_nested(json.loads(text))


def _source_offsets(file: Path) -> Position:
    """The offsets a query started from: one NUL byte, ``v1``, then JSON."""
    text = file.read_bytes().lstrip(b"\0").decode("utf-8")
    version, offsets = text.split("\n", 1)
    if version != "v1":
        raise ValueError(f"source offset format {version!r} is not v1")
    return Position.from_nested(json.loads(offsets))
