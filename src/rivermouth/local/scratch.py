"""Folders of ours: for downloads of the user, and scratch on the driver's disk or in a volume.

Scratch holds checkpoints, what a batch keeps in files, indexes of keys, and Spark's own files. On
the driver's disk a lock marks a folder as used while its process lives, and the next process
removes the folders of dead ones. The environment variable ``RIVERMOUTH_SCRATCH`` moves these
folders, ``RIVERMOUTH_VOLUMES`` those in a volume.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from rivermouth.config import Catalog, found_in
from rivermouth.errors import DiskFull, SetupError

_LOCK_SUFFIX = ".lock"
_WEEK_S = 7 * 86400
_OURS = re.compile(r"[a-z][a-z0-9_]*-[0-9a-f]{32}")


def scratch_root() -> Path:
    """The folder of this user's scratch folders."""
    named = os.environ.get("RIVERMOUTH_SCRATCH")
    return named_folder(named) if named else temporary_root()


def temporary_root() -> Path:
    """The folder of this user in the system's temporary one; its path is short."""
    return Path(tempfile.gettempdir()) / f"rivermouth-{os.getuid()}"


def volumes_root() -> Path:
    """The folder where Databricks mounts the volumes of Unity Catalog; tests name another."""
    return named_folder(os.environ.get("RIVERMOUTH_VOLUMES") or "/Volumes")


def volume_folder(names: Catalog) -> Path:
    """The volume of a warehouse in a catalog, as a folder."""
    return volumes_root() / names.catalog / names.schema / names.volume


@contextmanager
def scratch_folder(root: Path, name: str) -> Iterator[Path]:
    """A folder under ``root``: created on entry, locked while in use, removed on exit.

    Its path is absolute, since Spark takes it as a URI. On entry it also removes the folders of
    dead processes under ``root``, whatever their name.
    """
    root = root.absolute()
    root.mkdir(parents=True, exist_ok=True)
    remove_dead(root)
    folder = root / f"{name}-{uuid.uuid4().hex}"
    lock = os.open(_lock_file(folder), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _lock_file(folder).unlink(missing_ok=True)
        os.close(lock)


def scratch_of_process(root: Path, name: str) -> Path:
    """A scratch folder that is removed when this process ends."""
    in_use = ExitStack()
    atexit.register(in_use.close)
    return in_use.enter_context(scratch_folder(root, name))


def remove_dead(root: Path) -> None:
    """Remove every scratch folder under ``root`` whose process no longer holds its lock.

    Only folders with the name of a scratch folder are removed, so ``root`` may hold other
    files. A lock without a folder stays: a run may be about to create that folder.
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
    """A folder of one run in ``root``, which other machines can read; removed at the end.

    There are no locks in ``root``: folders of dead runs are removed once they are a week old.
    """
    folder = root / f"{name}-{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        remove_old(root)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_old(root: Path) -> None:
    """Remove the files of dead runs from a shared ``root`` after a week without a write.

    The folder of a live run may look a week old: it may have had no batch since, and on some
    volumes the time of a folder does not change with its content. So the age of each batch is
    that of its newest file, and the folder of a run is removed only if it is empty: Spark
    creates it again.
    """
    week_ago = time.time() - _WEEK_S
    for folder in root.iterdir():
        if not _OURS.fullmatch(folder.name):
            continue
        with suppress(OSError):  # its run is removing it, or is writing into it
            created = folder.stat().st_mtime
            for batch in folder.iterdir():
                if _last_write(batch) < week_ago:
                    shutil.rmtree(batch, ignore_errors=True)
            if created < week_ago:
                folder.rmdir()


def _last_write(path: Path) -> float:
    """The time of the last write to ``path`` or to anything in it."""
    return max(each.lstat().st_mtime for each in (path, *path.rglob("*")))


def _lock_file(folder: Path) -> Path:
    return folder.with_name(folder.name + _LOCK_SUFFIX)


_IMPORT_FROM_FOLDER = """\
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

spec = PathFinder.find_spec(__name__, [{folder!r}])
sys.modules[__name__] = module_from_spec(spec)
if spec.loader:
    spec.loader.exec_module(sys.modules[__name__])
"""


@cache
def importing_from(root: Path, folder: str) -> str:
    """A scratch folder below ``root`` from which just those modules are imported that the driver
    imports from ``folder``.

    It is the same one for as long as the process lives: Spark starts new workers for another path.
    """
    place = scratch_of_process(root, "imports")
    for each in found_in(folder):
        (place / f"{each}.py").write_text(
            _IMPORT_FROM_FOLDER.format(folder=folder), encoding="utf-8"
        )
    return str(place)


@cache
def zipped(root: Path, folder: str) -> Path:
    """The same modules, and packages with ``__init__``, as an archive, which travels to others."""
    place = scratch_of_process(root, "zipped") / "modules.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for each in found_in(folder):
            package = Path(folder, each)
            inside = package.rglob("*.py") if (package / "__init__.py").is_file() else ()
            for path in (package.with_suffix(".py"), *inside):
                if path.is_file():
                    archive.write(path, path.relative_to(folder))
    return place


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``RIVERMOUTH_CACHE``, else ``rivermouth`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    The folder may not exist yet. It is safe to delete it: the next run downloads again.
    """
    if named := environ.get("RIVERMOUTH_CACHE"):
        return named_folder(named)
    return named_folder(environ.get("XDG_CACHE_HOME") or "~/.cache") / "rivermouth"


def named_folder(text: str) -> Path:
    """The folder that a variable of the environment names: absolute, since we pass it on as a URI
    and to other processes.
    """
    return Path(text).expanduser().absolute()


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Translate the errors of the operating system for writes below ``place``.

    Raises DiskFull if the disk or the quota is full, SetupError for any other reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("no room is left on the disk", where=str(place)) from error
        raise SetupError(
            "the folder cannot be written",
            where=str(place),
            found=error.strerror or str(error),
            remedy="Name a folder of your own with RIVERMOUTH_CACHE",
        ) from error
