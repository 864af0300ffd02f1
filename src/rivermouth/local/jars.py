"""The jars of Spark and of the broker: downloaded once, compared with the lock, kept in a cache.

``jars.lock`` lists the jars of each set with their sha256. A set that is in the cache is not
downloaded again. From then on ``jars`` compares size and time of the files, and ``verify_jars``
their content.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from rivermouth.errors import JarMismatch, JarsUnreachable, SetupError
from rivermouth.local.cache import cache_folder, replace_file, writing
from rivermouth.local.ivy import Coordinate, retrieve
from rivermouth.local.java import find_java

__all__ = ["LOCK", "Downloading", "LockedJar", "jars", "read_lock", "verify_jars"]

LOCK = Path(__file__).with_name("jars.lock")
_OVER = "\x1b[A\r\x1b[K"
"""What puts the next line in the place of the last one, on a terminal."""


@dataclass(frozen=True)
class LockedJar:
    coordinate: Coordinate
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.coordinate.name}-{self.coordinate.version}.jar"


Progress = Callable[[str, int, int], None]
"""Told of a set, how many of its jars are there, and how many are downloaded in all."""


def _silent(set_name: str, done: int, total: int) -> None:
    del set_name, done, total


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
    """The sets by name. A line is ``[set]``, ``group:name:version sha256`` or a comment."""
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
    progress: Progress = _silent,
    environ: Mapping[str, str] = os.environ,
    lock: Path = LOCK,
) -> tuple[Path, ...]:
    """The files of a set (``spark`` or ``broker``), in the order of the lock.

    Downloads the missing ones and tells ``progress`` at the beginning and after each. Raises
    JavaMissing, JavaUnsupported, JarsUnreachable, JarMismatch, DiskFull or MissingPackage.
    """
    locked = read_lock(lock)[set_name]
    folder = cache_folder(environ) / "jars"
    files = tuple(folder / jar.file_name for jar in locked)
    stamp = folder / f".{set_name}.checked"
    if _seen_before(stamp, locked, files):
        return files
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        missing = [jar for jar in locked if not (folder / jar.file_name).exists()]
        if missing:

            def told(done: int) -> None:
                progress(set_name, done, len(missing))

            told(0)
            _fetch(missing, folder, told, environ)
        _check(locked, folder)
        replace_file(stamp, _facts(locked, files))
    return files


def verify_jars(
    set_name: str, *, environ: Mapping[str, str] = os.environ, lock: Path = LOCK
) -> None:
    """Read every file of the set and compare its content with the lock.

    Raises JarsUnreachable if a file is missing, JarMismatch if one differs.
    """
    _check(read_lock(lock)[set_name], cache_folder(environ) / "jars")


def _fetch(
    missing: Sequence[LockedJar],
    folder: Path,
    told: Callable[[int], None],
    environ: Mapping[str, str],
) -> None:
    """Download into a new folder, check, then rename: two processes may do it at the same time."""
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        fresh = Path(scratch)
        java = find_java(environ)
        number = itertools.count(1)
        retrieve(
            [jar.coordinate for jar in missing],
            fresh,
            java,
            progress=lambda _: told(next(number)),
            environ=environ,
        )
        for jar in missing:
            got = (
                fresh / jar.coordinate.group / jar.coordinate.name / f"{jar.coordinate.version}.jar"
            )
            _check_one(jar, got)
            got.replace(folder / jar.file_name)


def _check(locked: Sequence[LockedJar], folder: Path) -> None:
    for jar in locked:
        _check_one(jar, folder / jar.file_name)


def _check_one(jar: LockedJar, path: Path) -> None:
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


def _facts(locked: Sequence[LockedJar], files: Sequence[Path]) -> str:
    """Hash, size and time of each file: the text changes if the lock or a file changes."""
    stats = [path.stat() for path in files]
    seen = [
        [jar.sha256, stat.st_size, stat.st_mtime_ns]
        for jar, stat in zip(locked, stats, strict=True)
    ]
    return json.dumps(seen)


def _seen_before(stamp: Path, locked: Sequence[LockedJar], files: Sequence[Path]) -> bool:
    try:
        return stamp.read_text(encoding="utf-8") == _facts(locked, files)
    except OSError:
        return False


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
