"""Scratch folders on the driver's disk: for checkpoints and for Spark's own files.

Each is held by a lock while its process lives; what dead processes left is removed by the
next one. ``RIVERMOUTH_SCRATCH`` moves them, ``RIVERMOUTH_VOLUMES`` those in a volume.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

_LOCK_SUFFIX = ".lock"
_WEEK_S = 7 * 86400
_OURS = re.compile(r"[a-z][a-z0-9_]*-[0-9a-f]{32}")


def scratch_root() -> Path:
    """Where the scratch folders of this user lie."""
    named = os.environ.get("RIVERMOUTH_SCRATCH")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"rivermouth-{os.getuid()}"


def volumes_root() -> Path:
    """Where Unity Catalog's volumes are mounted; elsewhere than on Databricks, a folder."""
    return Path(os.environ.get("RIVERMOUTH_VOLUMES") or "/Volumes")


class ScratchFolder:
    """A folder under ``root``: created on entry, removed on exit, held by a lock between.

    Creating one also removes what dead processes have left there, under any name.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._folder = root / f"{name}-{uuid.uuid4().hex}"
        self._lock = -1

    def __enter__(self) -> Path:
        self._root.mkdir(parents=True, exist_ok=True)
        remove_dead(self._root)
        self._lock = os.open(_lock_file(self._folder), os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._folder.mkdir()
        return self._folder

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
    """Remove every scratch folder under ``root`` whose process no longer holds its lock.

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


@contextmanager
def shared_folder(root: Path, name: str) -> Iterator[Path]:
    """A folder of one run in ``root``, where other machines see it, too; gone at the end.

    No lock is to be had there: what dead runs left is removed once it is a week old.
    """
    folder = root / f"{name}-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        remove_old(root)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_old(root: Path) -> None:
    """Remove from a shared ``root`` what dead runs left, once nobody has written to it for a week.

    A live run's own folder may look that old: it may have had no batch for so long, and on some
    volumes a folder's time stays when something is put into it. So each batch in it is judged
    by the newest that it holds, and the folder itself goes only empty: Spark makes it anew.
    """
    ago = time.time() - _WEEK_S
    for folder in root.iterdir():
        if not _OURS.fullmatch(folder.name):
            continue
        with suppress(OSError):  # its run removes it right now, or puts something into it
            made = folder.stat().st_mtime
            for batch in folder.iterdir():
                if _written(batch) < ago:
                    shutil.rmtree(batch, ignore_errors=True)
            if made < ago:
                folder.rmdir()


def _written(path: Path) -> float:
    """When it, or anything in it, was last written to."""
    return max(each.lstat().st_mtime for each in (path, *path.rglob("*")))


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK_SUFFIX)
