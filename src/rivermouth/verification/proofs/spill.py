"""Files on disk for what would not fit into memory, in a temporary folder of their own."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

_BUFFERED_BYTES = 32 << 20
_PENDING_ITEMS = 50_000
_PENDING_BYTES = 32 << 20


class Spill:
    """Chunks of bytes by name; what exceeds ``buffered_bytes`` is written to ``folder``."""

    def __init__(self, folder: Path, buffered_bytes: int = _BUFFERED_BYTES) -> None:
        self._folder = folder
        self._limit = buffered_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._numbers: dict[object, int] = {}
        self._buffers: dict[object, list[bytes]] = {}
        self._buffered = 0

    def add(self, name: object, chunk: bytes) -> None:
        """Append to the bytes of ``name``."""
        self._buffers.setdefault(name, []).append(chunk)
        self._buffered += len(chunk)
        if self._buffered > self._limit:
            self._flush()

    def take(self, name: object) -> bytes:
        """All bytes of ``name`` in the order of ``add``; they are forgotten."""
        self._flush()
        file = self._file(name)
        if not file.exists():
            return b""
        content = file.read_bytes()
        file.unlink()
        return content

    def names(self) -> list[Any]:
        """All names that were given to ``add``."""
        self._flush()
        return [*self._numbers]

    def add_items(self, name: object, items: list[Any]) -> None:
        """Append Python values to ``name``; read them back with ``take_items``."""
        self.add(name, pickle.dumps(items, pickle.HIGHEST_PROTOCOL))

    def take_items(self, name: object) -> Iterator[Any]:
        """The values of ``name`` in the order of ``add_items``; they are forgotten."""
        self._flush()
        file = self._file(name)
        if not file.exists():
            return
        with file.open("rb") as chunks:
            while True:
                try:
                    yield from pickle.load(chunks)
                except EOFError:
                    break
        file.unlink()

    def _flush(self) -> None:
        for name, chunks in self._buffers.items():
            with self._file(name).open("ab") as file:
                file.writelines(chunks)
        self._buffers.clear()
        self._buffered = 0

    def _file(self, name: object) -> Path:
        return self._folder / str(self._numbers.setdefault(name, len(self._numbers)))


class Buckets:
    """Keyed tuples, spread by the hash of their key over ``number`` files.

    What has the same key is in the same bucket, in this process. Items come back as plain tuples,
    of whatever kind they were: those are written and read faster. ``items`` and ``sizes`` are how
    many items each bucket has, and how many bytes by what ``add`` was told. ``skip``: the hash is
    divided by it first, so that what has met in a bucket of so many spreads again.
    """

    def __init__(
        self, folder: Path, number: int, pending_items: int = _PENDING_ITEMS, skip: int = 1
    ) -> None:
        self.items = [0] * number
        self.sizes = [0] * number
        self._spill = Spill(folder)
        self._limit = pending_items
        self._skip = skip
        self._pending: list[list[Any]] = [[] for _ in range(number)]
        self._waiting = self._waiting_bytes = 0

    def add(self, key: Hashable, item: tuple[Any, ...], size: int = 0) -> None:
        """Put an item of about ``size`` bytes into the bucket of its key."""
        bucket = hash(key) // self._skip % len(self._pending)
        self._pending[bucket].append((key, tuple(item)))
        self.items[bucket] += 1
        self.sizes[bucket] += size
        self._waiting += 1
        self._waiting_bytes += size
        if self._waiting >= self._limit or self._waiting_bytes >= _PENDING_BYTES:
            self._flush()

    def take(self, number: int) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """All keys and items of one bucket, in the order of ``add``; they are forgotten."""
        self._flush()
        return self._spill.take_items(number)

    def _flush(self) -> None:
        for number, items in enumerate(self._pending):
            if items:
                self._spill.add_items(number, items)
        self._pending = [[] for _ in self._pending]
        self._waiting = self._waiting_bytes = 0
