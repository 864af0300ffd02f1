"""The per-user folder for downloaded files, and the errors of writing to a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rivermouth.errors import DiskFull, SetupError


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
