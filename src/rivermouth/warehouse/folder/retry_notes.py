"""What a run says of a pipeline that it tries again: for ``status``, which looks from elsewhere.

It is a small file beside the locks of the tables. Nothing is decided by it. So it is written as far
as possible, and a run that was killed leaves it there: it says when that was.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rivermouth.config import OFFSETS_TABLE


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
    """The notes of a warehouse in ``folder``, by pipeline."""

    def __init__(self, folder: Path) -> None:
        self._folder = OFFSETS_TABLE.path(folder).parent / "retrying"

    def write(self, pipeline: str, note: Retrying) -> None:
        """Leave a note."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file(pipeline).write_text(json.dumps(asdict(note)), encoding="utf-8")

    def remove(self, pipeline: str) -> None:
        """Take the note away, if there is one."""
        with suppress(OSError):
            self._file(pipeline).unlink()

    def read(self, pipeline: str) -> Retrying | None:
        """The note; None where there is none, or while it is being written."""
        try:
            return Retrying(**json.loads(self._file(pipeline).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _file(self, pipeline: str) -> Path:
        return self._folder / f"{pipeline}.json"
