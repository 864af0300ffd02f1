"""The jars of Spark, of the broker and of the registry: downloaded once, and compared with the
lock at each start.

``jars.lock`` lists the jars of each set with their sha256. To read them takes a tenth of a second.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from rivermouth.errors import JarMismatch, JarsUnreachable, SetupError
from rivermouth.local.ivy import Coordinate, retrieve
from rivermouth.local.java import find_java
from rivermouth.local.scratch import cache_folder, writing

LOCK = Path(__file__).with_name("jars.lock")
_OVER = "\x1b[A\r\x1b[K"
"""What puts the next line in the place of the last one, on a terminal."""


@dataclass(frozen=True)
class LockedJar:
    coordinate: Coordinate
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.coordinate.name}-{self.coordinate.file}"


Progress = Callable[[str, int, int], None]
"""It gets a set, how many of its jars are there, and how many are downloaded in all."""


class Downloading:
    """One line for each set: on a terminal it counts, anywhere else it is written once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, set_name: str, done: int, total: int) -> None:
        """A ``Progress``. Whatever is written next is on a line of its own."""
        line = f"downloading {total} jars (set {set_name})"
        if self._stream.isatty():
            self._stream.write(f"{_OVER if done else ''}{line}: {done}\n")
        elif not done:
            self._stream.write(f"{line}\n")
        self._stream.flush()


def read_lock(path: Path = LOCK) -> dict[str, tuple[LockedJar, ...]]:
    """The sets by name. A line is ``[set]``, a coordinate with its sha256, or a comment."""
    sets: dict[str, tuple[LockedJar, ...]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            sets[name] = ()
        elif line and not line.startswith("#"):
            coordinate, sha256 = line.split()
            sets[name] += (LockedJar(Coordinate.parse(coordinate), sha256),)
    return sets


def jars(
    set_name: str,
    *,
    progress: Progress = lambda *_: None,
    environ: Mapping[str, str] = os.environ,
    lock: Path = LOCK,
) -> tuple[Path, ...]:
    """The files of a set (``spark``, ``broker`` or ``registry``), in the order of the lock and as
    it says.

    Downloads the missing ones and tells ``progress`` at the beginning and after each. Raises
    JavaMissing, JavaUnsupported, JarsUnreachable, JarMismatch, DiskFull or MissingPackage.
    """
    locked = read_lock(lock)[set_name]
    folder = cache_folder(environ) / "jars"
    with writing(folder):
        missing = [jar for jar in locked if not (folder / jar.file_name).exists()]
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            numbers = itertools.count()
            _fetch(
                missing,
                folder,
                lambda: progress(set_name, next(numbers), len(missing)),
                environ,
            )
        return tuple(_checked(jar, folder / jar.file_name) for jar in locked)


def _fetch(
    missing: Sequence[LockedJar],
    folder: Path,
    count: Callable[[], None],
    environ: Mapping[str, str],
) -> None:
    """Download into a new folder, check, then rename: two processes may do it at the same time.

    Calls ``count`` at the beginning and after each jar.
    """
    count()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        wanted = [jar.coordinate for jar in missing]
        retrieve(
            wanted, Path(scratch), find_java(environ), progress=lambda _: count(), environ=environ
        )
        for jar in missing:
            place = jar.coordinate
            downloaded = Path(scratch, place.group, place.name, place.file)
            _checked(jar, downloaded).replace(folder / jar.file_name)


def _checked(jar: LockedJar, path: Path) -> Path:
    if not path.exists():
        raise JarsUnreachable(
            "a jar is not in the cache", where=str(path), remedy="Run: rivermouth doctor"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        raise JarMismatch(
            f"{jar.coordinate} is not the file that was locked",
            where=str(path),
            expected=f"sha256 {jar.sha256}",
            found=found,
        )
    return path


def main() -> int:
    """Download every set. For an error print one line and return its exit code."""
    try:
        for set_name in read_lock():
            jars(set_name, progress=Downloading(sys.stderr))
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
