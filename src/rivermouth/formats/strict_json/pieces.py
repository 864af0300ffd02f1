"""Records of a chunk on their way: their texts, and the rows that they became."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    def parts(self, most: int) -> Iterator[range]:
        """The places of all texts, in parts of at most so many bytes or of one text."""
        ends = np.cumsum(pc.binary_length(self.texts).to_numpy().astype(np.int64))
        start = 0
        while start < len(ends):
            before = ends[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield range(start, end)
            start = end

    def only(self, mask: np.ndarray) -> Texts:
        if mask.all():
            return self
        return Texts(self.texts.filter(pa.array(mask)), self.records[mask])


@dataclass(frozen=True)
class Piece:
    """Rows, and the indices of their records."""

    rows: pa.StructArray
    records: np.ndarray


def one_piece(pieces: Iterable[Piece]) -> Piece:
    """All of them, whose rows have one type."""
    some = [*pieces]
    if len(some) == 1:
        return some[0]
    return Piece(
        pa.concat_arrays([each.rows for each in some]),
        np.concatenate([each.records for each in some]),
    )
