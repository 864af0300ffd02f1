"""What a run says of a pipeline that it tries again: for ``status``, which looks from elsewhere.

It is a small file beside the locks of the tables. Nothing is decided by it. So it is written as far
as possible, and a run that was killed leaves it there: it says when that was.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass

from rivermouth.config import OFFSETS_TABLE
from rivermouth.storage.lake import Lake


@dataclass(frozen=True)
class Retrying:
    """A pipeline failed ``tries`` times in a row, first and last at these times (ms since 1970).

    ``reason`` is the last error.
    """

    since_ms: int
    at_ms: int
    tries: int
    reason: str


class RetryNotes:
    """The notes of a lake, by pipeline."""

    def __init__(self, lake: Lake) -> None:
        self._notes = lake.below(OFFSETS_TABLE.schema, "retrying")

    def write(self, pipeline: str, note: Retrying) -> None:
        """Leave a note."""
        with suppress(OSError):
            self._notes.put(_name(pipeline), json.dumps(asdict(note)).encode())

    def remove(self, pipeline: str) -> None:
        """Take the note away, if there is one."""
        with suppress(OSError):
            self._notes.delete([_name(pipeline)])

    def read(self, pipeline: str) -> Retrying | None:
        """The note; None where there is none, or it cannot be read."""
        try:
            found = self._notes.read(_name(pipeline))
            return None if found is None else Retrying(**json.loads(found))
        except (OSError, ValueError, TypeError):
            return None


def _name(pipeline: str) -> str:
    return f"{pipeline}.json"
