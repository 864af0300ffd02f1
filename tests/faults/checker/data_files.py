"""Data files as a version of a table has them: without the rows that a deletion vector deletes.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Deletion Vectors".
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.faults.checker.digest import Integers

_BATCH = 1 << 17
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = struct.pack("<I", 1681511377)


@dataclass(frozen=True, order=True)
class Vector:
    """The ``deletionVector`` of an action."""

    storage: str
    path: str
    offset: int
    size: int
    rows: int

    def file(self, table: Path) -> Path | None:
        """Where it lies; None: in the log itself. Raises pa.ArrowInvalid."""
        if self.storage == "i":
            return None
        if self.storage != "u":
            raise pa.ArrowInvalid(f"a deletion vector of the kind {self.storage}")
        name = f"deletion_vector_{UUID(bytes=_of_z85(self.path[-20:]))}.bin"
        return table / self.path[:-20] / name

    def deleted(self, table: Path) -> Integers:
        """The rows that it deletes, from 0 on. Raises OSError, and pa.ArrowInvalid for damage."""
        file = self.file(table)
        data = _of_z85(self.path)[: self.size] if file is None else self._stored(file)
        if data[:4] != _MAGIC:
            raise pa.ArrowInvalid(f"{self.path}: no deletion vector")
        found = np.array([*BitMap64.deserialize(data[4:])], np.int64)
        if len(found) != self.rows:
            raise pa.ArrowInvalid(f"{self.path}: deletes {len(found)} rows, not {self.rows}")
        return found

    def _stored(self, file: Path) -> bytes:
        stored = file.read_bytes()[self.offset :][: self.size + 8]
        data, around = stored[4:-4], stored[:4] + stored[-4:]
        if around != struct.pack(">II", self.size, zlib.crc32(data)):
            raise pa.ArrowInvalid(f"{file.name} at {self.offset}: length or check sum is wrong")
        return data


@dataclass(frozen=True)
class DataFile:
    """A data file, and the vector that deletes rows of it: another vector makes it another one."""

    path: str
    vector: Vector | None = None

    @staticmethod
    def of(action: Mapping[str, Any]) -> DataFile:
        """The one that an ``add`` or a ``remove`` names."""
        said = action.get("deletionVector")
        vector = said and Vector(
            said["storageType"],
            said["pathOrInlineDv"],
            int(said.get("offset") or 0),
            int(said["sizeInBytes"]),
            int(said["cardinality"]),
        )
        return DataFile(unquote(action["path"]), vector or None)

    def is_there(self, table: Path) -> bool:
        """Whether the file is there, and that of its vector."""
        beside = self.vector and self.vector.file(table)
        return (table / self.path).exists() and (not beside or beside.exists())

    def batches(self, table: Path, wanted: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows that are not deleted; of the ``wanted`` columns those that the file has.

        Raises OSError or pa.ArrowException for what cannot be read.
        """
        dead = self.vector.deleted(table) if self.vector else np.empty(0, np.int64)
        with pq.ParquetFile(table / self.path, coerce_int96_timestamp_unit="us") as parquet:
            there = parquet.schema_arrow.names
            columns = [each for each in wanted or there if each in there]
            first = 0
            for batch in parquet.iter_batches(_BATCH, columns=columns):
                rows = np.arange(first, first + len(batch))
                plain = pa.schema([each.with_type(_plain(each.type)) for each in batch.schema])
                yield batch.cast(plain).filter(pa.array(~np.isin(rows, dead)))
                first += len(batch)
        if len(dead) and dead[-1] >= first:
            raise pa.ArrowInvalid(f"{self.path}: its vector deletes row {dead[-1]} of {first}")

    def rows(self, table: Path, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The same as dicts."""
        return [row for batch in self.batches(table, wanted) for row in batch.to_pylist()]


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without views, of which Arrow cannot take some: delta-rs notes them in its files."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_plain(each.type)) for each in kind])
    views = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return views.get(kind, kind)


def _of_z85(text: str) -> bytes:
    """Z85 of ZeroMQ. Raises pa.ArrowInvalid."""
    try:
        words = [text[at : at + 5] for at in range(0, len(text), 5)]
        return b"".join(struct.pack(">I", _value(word)) for word in words)
    except (ValueError, struct.error) as fault:
        raise pa.ArrowInvalid(f"{text}: no Z85") from fault


def _value(word: str) -> int:
    return sum(_DIGITS.index(each) * 85**place for place, each in enumerate(reversed(word)))
