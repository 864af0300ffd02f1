"""Deletion vectors: which rows of a data file are deleted, in the layout of Delta's protocol.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Deletion Vector Format": a file holds a
byte ``1``, and for each vector its length (4 bytes, big-endian), a magic number (4 bytes,
little-endian), a 64-bit Roaring bitmap in its portable layout, and the CRC-32 of magic and bitmap
(4 bytes, big-endian). The length is that of magic and bitmap.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap64

from rivermouth.storage.store import Store

_VERSION, _MAGIC = b"\x01", 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_IN_FILE, _AT_PATH, _INLINE = "u", "p", "i"
_UUID_TEXT = 20
"""So many characters of Z85 are a UUID."""


def of_rows(rows: npt.NDArray[np.uint64]) -> BitMap64:
    """The rows with these numbers, in any order: ten times as fast as of a list."""
    return BitMap64(array("Q", np.sort(rows).tobytes()))


class VectorUnreadable(ValueError):
    """Bytes that are no deletion vector, or another one than its descriptor says."""


@dataclass(frozen=True)
class Vector:
    """Where a deletion vector is: the ``deletionVector`` of an ``add`` or a ``remove``.

    ``storage`` is ``u`` (``path`` is a prefix and a UUID in Z85), ``p`` (an absolute path), or
    ``i`` (the vector itself, in Z85). ``offset`` is where its length stands in the file; ``size``
    is that of magic and bitmap, in bytes; ``rows`` is how many rows it deletes.
    """

    storage: str
    path: str
    offset: int | None
    size: int
    rows: int

    @staticmethod
    def of(said: Mapping[str, Any]) -> Vector:
        """The one that an action names."""
        offset = said.get("offset")
        return Vector(
            str(said["storageType"]),
            str(said["pathOrInlineDv"]),
            None if offset is None else int(offset),
            int(said["sizeInBytes"]),
            int(said["cardinality"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as an action says it."""
        found: dict[str, Any] = {"storageType": self.storage, "pathOrInlineDv": self.path}
        if self.offset is not None:
            found["offset"] = self.offset
        return {**found, "sizeInBytes": self.size, "cardinality": self.rows}

    @property
    def key(self) -> str:
        """What tells this vector from others, as Delta compares files by it."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage}{self.path}{at}"

    @property
    def elsewhere(self) -> bool:
        """Whether its file does not lie in the folder of the table."""
        return self.storage not in (_IN_FILE, _INLINE)

    @property
    def file(self) -> str | None:
        """The path of its file below the table; None where it lies in the log, or elsewhere."""
        if self.storage != _IN_FILE:
            return None
        prefix, name = self.path[:-_UUID_TEXT], self.path[-_UUID_TEXT:]
        folder = f"{prefix}/" if prefix else ""
        return f"{folder}deletion_vector_{UUID(bytes=from_z85(name))}.bin"


def read_vector(store: Store, vector: Vector) -> BitMap64:
    """The rows that it deletes, counted from 0. Raises VectorUnreadable."""
    if vector.storage == _INLINE:
        data = from_z85(vector.path)[: vector.size]
        return _bitmap(data, vector)
    if vector.file is None:
        raise VectorUnreadable(f"a vector at {vector.path}, which is outside of the table")
    stored = store.part(vector.file, vector.offset or 0, vector.size + 8)
    (length,), check = struct.unpack(">I", stored[:4]), stored[4 + vector.size :]
    data = stored[4 : 4 + vector.size]
    if length != vector.size or struct.pack(">I", zlib.crc32(data)) != check:
        raise VectorUnreadable(f"{vector.file} at {vector.offset}: length or check sum is wrong")
    return _bitmap(data, vector)


def deleted_rows(store: Store, vector: Vector | None) -> BitMap64:
    """The rows that are deleted of a file that has such a vector, or none."""
    return BitMap64() if vector is None else read_vector(store, vector)


def _bitmap(data: bytes, vector: Vector) -> BitMap64:
    if len(data) < 4 or struct.unpack("<I", data[:4]) != (_MAGIC,):
        raise VectorUnreadable(f"{vector.path}: no deletion vector")
    found = BitMap64.deserialize(data[4:])
    if len(found) != vector.rows:
        raise VectorUnreadable(f"{vector.path}: {len(found)} rows instead of {vector.rows}")
    return found


def vector_file(name: UUID, deleted: Iterable[BitMap64]) -> tuple[bytes, list[Vector]]:
    """A file that holds these vectors, in this order, and where each of them is in it.

    It is to be created as ``Vector.file`` says.
    """
    content, found, text = bytearray(_VERSION), list[Vector](), to_z85(name.bytes)
    for rows in deleted:
        data = struct.pack("<I", _MAGIC) + rows.serialize()
        found.append(Vector(_IN_FILE, text, len(content), len(data), len(rows)))
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    return bytes(content), found


def to_z85(data: bytes) -> str:
    """Bytes, whose number is a multiple of four, in Z85 (ZeroMQ RFC 32)."""
    found = ""
    for (value,) in struct.iter_unpack(">I", data):
        digits = [value // 85**place % 85 for place in (4, 3, 2, 1, 0)]
        found += "".join(_Z85[each] for each in digits)
    return found


def from_z85(text: str) -> bytes:
    """The bytes of ``to_z85``. Raises VectorUnreadable."""
    try:
        digits = [_Z85.index(each) for each in text]
        words = [digits[at : at + 5] for at in range(0, len(digits), 5)]
        values = [sum(each * 85 ** (4 - n) for n, each in enumerate(word)) for word in words]
        return b"".join(struct.pack(">I", each) for each in values)
    except (ValueError, struct.error) as fault:
        raise VectorUnreadable(f"{text!r} is no Z85") from fault
