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

from rivermouth.errors import JarMismatch, JarsUnreachable, SetupError
from rivermouth.local.cache import cache_folder, replace_file, writing
from rivermouth.local.ivy import Coordinate, retrieve
from rivermouth.local.java import find_java

__all__ = ["LOCK", "LockedJar", "jars", "read_lock", "verify_jars"]

LOCK = Path(__file__).with_name("jars.lock")


@dataclass(frozen=True)
class LockedJar:
    coordinate: Coordinate
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.coordinate.name}-{self.coordinate.version}.jar"


def _silent(line: str) -> None:
    del line


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
    progress: Callable[[str], None] = _silent,
    environ: Mapping[str, str] = os.environ,
    lock: Path = LOCK,
) -> tuple[Path, ...]:
    """The files of a set (``spark`` or ``broker``), in the order of the lock.

    Downloads the missing ones and passes one line per jar to ``progress``. Raises JavaMissing,
    JavaUnsupported, JarsUnreachable, JarMismatch, DiskFull or MissingPackage.
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
            progress(f"downloading {len(missing)} jars (set {set_name})")
            _fetch(missing, folder, progress, environ)
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
    progress: Callable[[str], None],
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
            progress=lambda name: progress(f"jar {next(number)}/{len(missing)}: {name}"),
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


def _show(line: str) -> None:
    """One line that changes on a terminal; in a log only the headings."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
    elif not line.startswith("jar "):
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Download every set. For an error print one line and return its exit code."""
    try:
        for set_name in read_lock():
            jars(set_name, progress=_show)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return 0


if __name__ == "__main__":
    sys.exit(main())
