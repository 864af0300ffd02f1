"""A store of objects below one prefix: a folder of this machine, or a bucket.

All that the protocol asks of a store is here. ``create`` is the compare-and-swap of a Delta log: of
two that create one object at once, one succeeds. On a folder of this machine, what was created or
put is on the disk before the call returns; a bucket promises that by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, MemoryStore, ObjectStore

if TYPE_CHECKING:
    from obstore import ReadableFile

STORE_FAULTS = (BaseError, OSError)
"""What a store raises where it does not answer, or refuses."""


@dataclass(frozen=True)
class Stored:
    """An object: its path, its bytes, and when it was last written, in ms since 1970."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Store:
    """The objects below a prefix, which need not exist. Paths are relative to it, with slashes.

    ``where`` names it for people. ``folder`` is where the objects lie on this machine; None:
    elsewhere. All raise ``STORE_FAULTS``, but for what the methods say.
    """

    objects: ObjectStore
    where: str
    folder: Path | None = None

    @staticmethod
    def of_folder(folder: Path) -> Store:
        """A folder of this machine, which is made once something is put into it."""
        return Store(LocalStore(), str(folder), folder.absolute())

    @staticmethod
    def in_memory() -> Store:
        """One for tests, which is gone with the process."""
        return Store(MemoryStore(), "memory")

    def read(self, path: str) -> bytes | None:
        """The whole object; None where there is none."""
        try:
            if self.folder is not None:  # obstore takes 20 times as long for a small file
                return (self.folder / path).read_bytes()
            return bytes(obstore.get(self.objects, path).bytes())
        except (NotFoundError, FileNotFoundError, NotADirectoryError):
            return None

    def part(self, path: str, start: int, length: int) -> bytes:
        """So many bytes of an object, from ``start`` on."""
        return bytes(obstore.get_range(self.objects, self._at(path), start=start, length=length))

    def opened(self, path: str) -> pa.NativeFile:
        """An object to read in parts, as Parquet is."""
        if self.folder is not None:
            return pa.OSFile(str(self.folder / path))
        return pa.PythonFile(_Parts(obstore.open_reader(self.objects, path)), "r")

    def has(self, path: str) -> bool:
        """Whether there is such an object."""
        try:
            if self.folder is not None:
                return S_ISREG((self.folder / path).stat().st_mode)
            obstore.head(self.objects, path)
        except (NotFoundError, FileNotFoundError, NotADirectoryError):
            return False
        return True

    def create(self, path: str, content: bytes) -> bool:
        """Make the object. False, and nothing is changed, where there is one already."""
        try:
            obstore.put(self.objects, self._at(path), content, mode="create")
        except AlreadyExistsError:
            return False
        self.sync_objects([path])
        self.sync_names([path])
        return True

    def names(self, folder: str, after: str = "") -> list[str]:
        """The names of what lies in ``folder``, in order, behind the name ``after``."""
        if self.folder is not None:  # obstore would ask for the size of each file
            with suppress(FileNotFoundError, NotADirectoryError):
                return sorted(each for each in os.listdir(self.folder / folder) if each > after)
            return []
        found = obstore.list(self.objects, f"{folder}/", offset=f"{folder}/{after}")
        paths = (each["path"].removeprefix(f"{folder}/") for batch in found for each in batch)
        return sorted(each for each in paths if "/" not in each)

    def below(self, takes: Callable[[str], bool], folder: str = "") -> Iterator[Stored]:
        """The objects in ``folder`` and in folders below it, whose names ``takes`` takes.

        Each name on the way is asked for. What goes meanwhile does not matter.
        """
        objects, folders = self._listed(folder)
        yield from (each for each in objects if takes(each.path.rpartition("/")[2]))
        for each in folders:
            if takes(each.rpartition("/")[2]):
                yield from self.below(takes, each)

    def _listed(self, folder: str) -> tuple[list[Stored], list[str]]:
        """The objects in a folder itself, and the folders in it."""
        if self.folder is None:
            listed = obstore.list_with_delimiter(self.objects, folder or None)
            objects = [
                Stored(each["path"], each["size"], int(each["last_modified"].timestamp() * 1000))
                for each in listed["objects"]
            ]
            return objects, [*listed["common_prefixes"]]
        objects, folders = list[Stored](), list[str]()
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self.folder / folder) as entries,
        ):
            for each in entries:
                path = f"{folder}/{each.name}" if folder else each.name
                if each.is_dir(follow_symlinks=False):
                    folders.append(path)
                    continue
                with suppress(FileNotFoundError):
                    found = each.stat(follow_symlinks=False)
                    objects.append(Stored(path, found.st_size, found.st_mtime_ns // 1_000_000))
        return objects, folders

    def delete(self, paths: Iterable[str]) -> None:
        """Remove these objects; those that are not there do not matter."""
        for each in paths:
            with suppress(NotFoundError, FileNotFoundError):
                obstore.delete(self.objects, self._at(each))

    def sync_objects(self, paths: Iterable[str]) -> None:
        """Let these objects reach the disk; those that are gone do not matter."""
        if self.folder is None:
            return
        for each in paths:
            with suppress(FileNotFoundError):
                sync(self.folder / each)

    def sync_names(self, paths: Iterable[str]) -> None:
        """Let the names of these objects reach the disk."""
        if self.folder is not None:
            for each in dict.fromkeys((self.folder / path).parent for path in paths):
                sync(each)

    def _at(self, path: str) -> str:
        # A store of a folder that does not exist cannot be made, so that of this machine has none.
        return path if self.folder is None else str(self.folder / path)


class _Parts:
    """A reader of obstore as Arrow asks for it: with ``closed``."""

    def __init__(self, reader: ReadableFile) -> None:
        self._reader, self.closed = reader, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def close(self) -> None:
        self._reader.close()
        self.closed = True


def sync(path: Path) -> None:
    """Let what a file or a folder holds reach the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
