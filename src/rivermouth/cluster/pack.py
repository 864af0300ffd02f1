"""The packages that Spark's tasks import, as one archive: those of this environment, as they are.

So driver and tasks have the same versions, and nothing is downloaded. Spark itself is not in it: a
cluster has its own. The Python of the executors has to be of the same minor version, on the same
system.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import sys
import tarfile
import time
import uuid
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

import rivermouth

PACKAGE = "rivermouth"
_OF_SPARK = {"pyspark", "py4j", "delta-spark"}
_OF_THE_DRIVER = {"deltalake"}
"""What only the driver imports: a quarter of all."""
_WEEK_S = 7 * 86400
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_IMPORTED = {"__pycache__", "include", "tests", "test"}
_ENDS = (".pyc", ".pyx", ".pxd", ".h", ".a", ".cpp", ".pyi")


def environment(folder: Path, *, driver: bool = False) -> Path:
    """The archive in ``folder``, made if it is not there: a name for each content.

    ``driver``: a driver may import from it, too.
    """
    names = packed()
    taken = (each for name, each in names.items() if driver or name not in _OF_THE_DRIVER)
    files = dict(sorted(_files(taken)))
    told = [
        f"{name} {path.stat().st_size} {path.stat().st_mtime_ns}" for name, path in files.items()
    ]
    python = f"{sys.platform} {sys.version_info[0]}.{sys.version_info[1]}"
    known = hashlib.sha256("\n".join((python, *told)).encode()).hexdigest()[:16]
    archive = folder / f"environment-{known}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f".{uuid.uuid4()}"
        try:
            _write(made, files)
            for each in folder.glob("environment-*.tar.gz"):
                if each.stat().st_mtime < time.time() - _WEEK_S:
                    each.unlink(missing_ok=True)
            made.replace(archive)
        finally:
            made.unlink(missing_ok=True)
    return archive


def packed(name: str = PACKAGE) -> dict[str, Distribution]:
    """The package and what it requires, at any depth, as far as it is installed here."""
    found: dict[str, Distribution] = {}
    todo = [name]
    while todo:
        each = _normal(todo.pop())
        if each in found or each in _OF_SPARK:
            continue
        try:
            found[each] = distribution(each)
        except PackageNotFoundError:  # of an extra, or of another system
            continue
        lines = found[each].requires or ()
        # Our own extras are taken where they are installed, those of others are not.
        required = [line for line in lines if each == PACKAGE or "extra ==" not in line]
        todo += [match[0] for match in map(_NAME.match, required) if match is not None]
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _files(packages: Iterable[Distribution]) -> Iterator[tuple[str, Path]]:
    """The files of all packages by their names in the archive."""
    home = Path(rivermouth.__file__).parent
    for path in home.rglob("*"):
        if path.is_file() and _imported(PurePosixPath(path.relative_to(home).as_posix())):
            yield f"{PACKAGE}/{path.relative_to(home).as_posix()}", path
    for each in packages:
        if each.name == PACKAGE:  # an editable installation lists none of its modules
            continue
        for file in each.files or ():
            if ".." not in file.parts and _imported(PurePosixPath(str(file))):
                yield str(file), Path(str(each.locate_file(file)))


def _imported(file: PurePosixPath) -> bool:
    return not _NOT_IMPORTED.intersection(file.parts) and not file.name.endswith(_ENDS)


def _write(archive: Path, files: dict[str, Path]) -> None:
    with (
        gzip.open(archive, "wb", compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, path in files.items():
            tar.add(path, name, recursive=False)
