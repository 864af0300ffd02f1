"""The per-user folder for what is fetched once, and what it means when it cannot be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rivermouth.errors import DiskFull, SetupError

__all__ = ["cache_folder", "replace_file", "writing"]


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """``RIVERMOUTH_CACHE``, else ``rivermouth`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    The folder need not exist yet. Deleting it is always safe: the next run fetches again.
    """
    if named := environ.get("RIVERMOUTH_CACHE"):
        return Path(named).expanduser().absolute()
    parent = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(parent).expanduser().absolute() / "rivermouth"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Translate what the operating system says about writing below ``place``.

    Raises DiskFull when there is no room (or no quota), SetupError when it is not allowed.
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


def replace_file(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write ``path`` so that a reader at any moment sees the old text or the new one, whole."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(mode)
    fresh.replace(path)
