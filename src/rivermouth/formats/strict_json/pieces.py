"""Records of a chunk on their way: their texts, and the rows that they became."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import Chunk, joined


@dataclass(frozen=True)
class Texts:
    """Texts, and the indices of their records, which rise."""

    texts: pa.StringArray
    records: np.ndarray

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def chunk(self) -> Chunk:
        return joined(self.texts)

    def part(self, start: int, end: int) -> Texts:
        return Texts(self.texts.slice(start, end - start), self.records[start:end])

    def parts(self, most: int) -> Iterator[Texts]:
        """All of them in order, in parts of at most so many bytes or of one text."""
        for each in portions(self.texts, most, len(self)):
            yield self.part(each.start, each.stop)

    def only(self, mask: np.ndarray) -> Texts:
        if mask.all():
            return self
        return Texts(self.texts.filter(pa.array(mask)), self.records[mask])


_NONE = -1


@dataclass(frozen=True)
class Piece:
    """Rows, and the indices of their records; -1 for a row that is left out later: until then,
    that costs less than to copy the others.
    """

    rows: pa.StructArray
    records: np.ndarray

    @classmethod
    def joined(cls, pieces: Sequence[Piece]) -> Piece:
        """All as one. There is one at least, and all are of the same type."""
        if len(pieces) == 1:
            return pieces[0]
        records = np.concatenate([each.records for each in pieces])
        return cls(pa.concat_arrays([each.rows for each in pieces]), records)

    def only(self, mask: np.ndarray) -> Piece:
        return self if mask.all() else Piece(self.rows, np.where(mask, self.records, _NONE))

    @property
    def kept(self) -> np.ndarray:
        """Which rows are not left out."""
        kept: np.ndarray = self.records != _NONE
        return kept

    @property
    def found(self) -> np.ndarray:
        """The indices of the records of these rows."""
        found: np.ndarray = self.records[self.kept]
        return found


def portions(values: pa.Array, most: int, records: int) -> Iterator[range]:
    """The places of all values in order, in portions of at most so many bytes, or of one value, and
    of at most so many ``records``.
    """
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy()
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        fitting = int(np.searchsorted(ends, before + most, side="right"))
        end = max(start + 1, min(fitting, start + records))
        yield range(start, end)
        start = end
