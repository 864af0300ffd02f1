"""Spark's checkpoint, as scratch: a fresh folder per run, read for ranges, then thrown away.

Nothing is ever resumed from it, so a lost, stale, corrupt or foreign checkpoint cannot
matter. It lies on the driver's local disk. ``RIVERMOUTH_SCRATCH`` moves it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rivermouth.errors import BatchFailed
from rivermouth.offsets import OffsetRange, Position
from rivermouth.plan import batch_ranges

_LOCK_SUFFIX = ".lock"
_OURS = re.compile(r"[a-z][a-z0-9_]*-[0-9a-f]{32}")


def scratch_root() -> Path:
    """Where the checkpoints of this user's runs lie."""
    named = os.environ.get("RIVERMOUTH_SCRATCH")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"rivermouth-{os.getuid()}"


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
        return batch_ranges(before, after)


class ScratchCheckpoint:
    """A checkpoint for one run: created on entry, removed on exit, held by a lock between.

    Creating one also removes what dead runs have left under ``root``, of any pipeline.
    """

    def __init__(self, root: Path, pipeline: str) -> None:
        self._root = root
        self._folder = root / f"{pipeline}-{uuid.uuid4().hex}"
        self._lock = -1

    def __enter__(self) -> Checkpoint:
        self._root.mkdir(parents=True, exist_ok=True)
        remove_dead(self._root)
        self._lock = os.open(_lock_file(self._folder), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._folder.mkdir()
        return Checkpoint(self._folder)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        _lock_file(self._folder).unlink(missing_ok=True)
        os.close(self._lock)


def remove_dead(root: Path) -> None:
    """Remove every checkpoint under ``root`` whose run no longer holds its lock.

    Goes by their names, so a user may share the folder with other things. A lock without
    a folder is left alone: it may be of a run that is about to make its folder.
    """
    for folder in root.iterdir():
        if not (_OURS.fullmatch(folder.name) and folder.is_dir()):
            continue
        lock = os.open(_lock_file(folder), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            _lock_file(folder).unlink(missing_ok=True)
        finally:
            os.close(lock)


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK_SUFFIX)


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
