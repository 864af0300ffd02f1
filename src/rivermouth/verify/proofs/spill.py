"""Files on disk for what would not fit into memory, in a temporary folder of their own."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BUFFERED_BYTES = 32 << 20


class Spill:
    """Chunks of bytes by name; what exceeds ``buffered_bytes`` lies in ``folder``."""

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
        """All bytes of ``name`` in the order they came; they are forgotten."""
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
        """The values of ``name`` in the order they came; they are forgotten."""
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
