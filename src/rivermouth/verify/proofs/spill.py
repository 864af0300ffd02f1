"""Files on disk for what would not fit into memory, in a temporary folder of their own."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

_BUFFERED_BYTES = 32 << 20
_PENDING_ITEMS = 50_000


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
    of whatever kind they were: those are written and read faster.
    """

    def __init__(self, folder: Path, number: int, pending_items: int = _PENDING_ITEMS) -> None:
        self._spill = Spill(folder)
        self._limit = pending_items
        self._pending: list[list[Any]] = [[] for _ in range(number)]
        self._items = 0

    def add(self, key: Hashable, item: tuple[Any, ...]) -> None:
        """Put an item into the bucket of its key."""
        self._pending[hash(key) % len(self._pending)].append((key, tuple(item)))
        self._items += 1
        if self._items >= self._limit:
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
        self._items = 0
