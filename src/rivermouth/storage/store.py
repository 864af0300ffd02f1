"""A store of objects below one prefix: a folder of this machine, or a part of a bucket.

All that the protocol asks of a store is here. ``create`` is the compare-and-swap of a Delta log: of
two that create one object at once, one succeeds. On a folder of this machine, what was created or
put is on the disk before the call returns; a bucket promises that by itself.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
import pyarrow as pa

from rivermouth.storage.client import FILE, Client
from rivermouth.storage.faults import StoreFault, asked

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from obstore import ObjectMeta, ReadableFile

T = TypeVar("T")

STORE_FAULTS = (OSError,)
"""What a store raises where it does not answer, or refuses."""
AT_ONCE = 32
"""A bucket is asked so many things at a time at the most."""
_TRIES = 3
"""A store may say that an object is being created, and then there is none."""


@dataclass(frozen=True)
class Stored:
    """An object: its path, its bytes, and when it was last written, in ms since 1970."""

    path: str
    size: int
    modified_ms: int


@dataclass(frozen=True)
class Store:
    """The objects below ``prefix``, which need not exist. Paths are relative to it, with slashes.

    ``where`` names it for people and for other tools. It may be given to a task. All raise
    ``STORE_FAULTS``, but for what the methods say.
    """

    client: Client
    prefix: str
    where: str

    @staticmethod
    def of_folder(folder: Path) -> Store:
        """A folder of this machine, which is made once something is put into it."""
        return Store(Client(), str(folder.absolute()), str(folder))

    @staticmethod
    def in_memory() -> Store:
        """One for tests, which is gone with the process."""
        return Store(Client.in_memory(), "at", "memory")

    def within(self, name: str) -> Store:
        """The objects below a folder of this one."""
        return Store(self.client, f"{self.prefix}/{name}", f"{self.where}/{name}")

    @property
    def folder(self) -> Path | None:
        """Where the objects lie on this machine; None: elsewhere."""
        return Path(self.prefix) if self.client.scheme == FILE else None

    def read(self, path: str) -> bytes | None:
        """The whole object; None where there is none."""
        if (folder := self.folder) is not None:  # obstore takes 20 times as long for a small file
            with suppress(FileNotFoundError, NotADirectoryError):
                return (folder / path).read_bytes()
            return None
        with suppress(FileNotFoundError):
            return bytes(self._ask(path, lambda at: obstore.get(self.client.objects, at).bytes()))
        return None

    def part(self, path: str, start: int, length: int) -> bytes:
        """So many bytes of an object, from ``start`` on."""
        objects = self.client.objects
        return bytes(
            self._ask(path, lambda at: obstore.get_range(objects, at, start=start, length=length))
        )

    def opened(self, path: str) -> pa.NativeFile:
        """An object to read in parts, as Parquet is."""
        if (folder := self.folder) is not None:
            return pa.OSFile(str(folder / path))
        objects = self.client.large
        return pa.PythonFile(
            _Parts(self, path, self._ask(path, lambda at: obstore.open_reader(objects, at))), "r"
        )

    def has(self, path: str) -> bool:
        """Whether there is such an object."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """The bytes of an object; None where there is none."""
        with suppress(FileNotFoundError, NotADirectoryError):
            if (folder := self.folder) is not None:
                found = (folder / path).stat()
                return found.st_size if S_ISREG(found.st_mode) else None
            objects = self.client.objects
            return int(self._ask(path, lambda at: obstore.head(objects, at))["size"])
        return None

    def create(self, path: str, content: bytes) -> bool:
        """Make the object. False, and nothing is changed, where there is another one already.

        The client may have tried again what had succeeded: then it is our own that is there.
        """
        objects = self.client.objects
        for _ in range(_TRIES):
            try:
                self._ask(path, lambda at: obstore.put(objects, at, content, mode="create"))
            except FileExistsError:
                there = self.read(path)
                if there is None:
                    continue
                if there != content:
                    return False
            self.sync_objects([path])
            self.sync_names([path])
            return True
        raise StoreFault(f"{self.where}/{path}: it is being created, and then it is not there")

    def put(self, path: str, content: bytes) -> None:
        """Make the object, or replace it as a whole."""
        objects = self.client.objects
        self._ask(path, lambda at: obstore.put(objects, at, content, use_multipart=False))
        self.sync_objects([path])
        self.sync_names([path])

    def upload(self, path: str) -> Upload:
        """A large object to write, which is there once it is ``finished``."""
        return Upload(self, path)

    def names(self, folder: str, after: str = "") -> list[str]:
        """The names of what lies in ``folder``, in order, behind the name ``after``."""
        if (here := self.folder) is not None:  # obstore would ask for the size of each file
            with suppress(FileNotFoundError):
                return sorted(each for each in os.listdir(here / folder) if each > after)
            return []
        begins = f"{self._at(folder)}/"
        found = self._listed(begins, offset=begins + after if after else None)
        paths = (each["path"].removeprefix(begins) for each in found)
        return sorted(each for each in paths if "/" not in each)

    def below(self, takes: Callable[[str], bool], folder: str = "") -> Iterator[Stored]:
        """The objects in ``folder`` and in folders below it, whose names ``takes`` takes.

        Each name on the way is asked for. What goes meanwhile does not matter.
        """
        if (here := self.folder) is not None:
            yield from _below(here, takes, folder)
            return
        begins = self._at(folder).rstrip("/") + "/"
        for each in self._listed(begins):
            path = each["path"].removeprefix(begins)
            if all(map(takes, path.split("/"))):
                path = f"{folder}/{path}" if folder else path
                modified = int(each["last_modified"].timestamp() * 1000)
                yield Stored(path, each["size"], modified)

    def _listed(self, begins: str, offset: str | None = None) -> Iterable[ObjectMeta]:
        found = partial(obstore.list, self.client.objects, begins, offset=offset)
        return asked(self.where, lambda: [*chain.from_iterable(found())])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove these objects; those that are not there do not matter."""
        objects = self.client.objects
        for each in paths:
            with suppress(FileNotFoundError):
                self._ask(each, lambda at: obstore.delete(objects, at))

    def together(self, *acts: Callable[[], T]) -> list[T]:
        """What these give, in their order: asked at once of a bucket, since each answer takes long.

        Raises the first fault.
        """
        if self.folder is not None or len(acts) < 2:
            return [each() for each in acts]
        later = [_waiting().submit(each) for each in acts[1:]]
        try:
            first = acts[0]()
        finally:
            wait(later)
        return [first, *(each.result() for each in later)]

    def delta_rs(self, version: int | None = None) -> DeltaTable:
        """The table here, as delta-rs reads it. Raises what delta-rs does."""
        from deltalake import DeltaTable

        options = self.client.delta_rs
        return DeltaTable(self.where, version, storage_options=options or None)

    def sync_objects(self, paths: Iterable[str]) -> None:
        """Let these objects reach the disk; those that are gone do not matter."""
        if (folder := self.folder) is None:
            return
        for each in paths:
            with suppress(FileNotFoundError):
                sync(folder / each)

    def sync_names(self, paths: Iterable[str]) -> None:
        """Let the names of these objects reach the disk."""
        if (folder := self.folder) is not None:
            for each in dict.fromkeys((folder / path).parent for path in paths):
                sync(each)

    def _at(self, path: str) -> str:
        return "/".join(filter(None, (self.prefix, path)))

    def _ask(self, path: str, act: Callable[[str], T]) -> T:
        return asked(f"{self.where}/{path}", lambda: act(self._at(path)))


@cache
def _waiting() -> ThreadPoolExecutor:
    """The threads of this process that wait for answers."""
    return ThreadPoolExecutor(AT_ONCE, "store")


class Upload:
    """An object that is being written into ``file``.

    On a folder that is the object itself; what goes to a bucket waits in a temporary file. It is
    one request then, whatever its size: so no store keeps parts of an object that nobody finished.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        folder = store.folder
        self._waits: int | None = None
        if folder is None:
            self._waits, name = tempfile.mkstemp(prefix="rivermouth-", suffix=".upload")
            self._local = Path(name)
        else:
            self._local = folder / path
            if "/" in path:
                self._local.parent.mkdir(parents=True, exist_ok=True)
        self.file = pa.OSFile(str(self._local), "wb")
        if self._waits is not None:
            self._local.unlink()  # nothing of it is left where a task is killed

    @property
    def size(self) -> int:
        """So many bytes were written."""
        return int(self.file.tell())

    def finished(self) -> Stored:
        """Let the object be there, whole."""
        self.file.close()
        if self._waits is None:
            sync(self._local)
            found = self._local.stat()
            return Stored(self._path, found.st_size, found.st_mtime_ns // 1_000_000)
        large = self._store.client.large
        # It is not closed: some stores keep what they are given.
        content = memoryview(mmap.mmap(self._waits, 0, access=mmap.ACCESS_READ))
        self._store._ask(
            self._path, lambda at: obstore.put(large, at, content, use_multipart=False)
        )
        self._forget()
        return Stored(self._path, len(content), int(time.time() * 1000))

    def discard(self) -> None:
        """Give it up; nothing is left of it."""
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            self._local.unlink()
        self._forget()

    def _forget(self) -> None:
        if self._waits is not None:
            os.close(self._waits)
            self._waits = None


class _Parts:
    """A reader of obstore as Arrow asks for it: with ``closed``, and errors of ours."""

    def __init__(self, store: Store, path: str, reader: ReadableFile) -> None:
        self._store, self._path = store, path
        self._reader, self.closed = reader, False

    def read(self, *size: int) -> bytes:
        return bytes(self._store._ask(self._path, lambda _: self._reader.read(*size)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def close(self) -> None:
        self._reader.close()
        self.closed = True


def _below(here: Path, takes: Callable[[str], bool], folder: str) -> Iterator[Stored]:
    folders = list[str]()
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(here / folder) as entries:
        for each in entries:
            path = f"{folder}/{each.name}" if folder else each.name
            if not takes(each.name):
                continue
            if each.is_dir(follow_symlinks=False):
                folders.append(path)
                continue
            with suppress(FileNotFoundError):
                found = each.stat(follow_symlinks=False)
                yield Stored(path, found.st_size, found.st_mtime_ns // 1_000_000)
    for inner in folders:
        yield from _below(here, takes, inner)


def sync(path: Path) -> None:
    """Let what a file or a folder holds reach the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
