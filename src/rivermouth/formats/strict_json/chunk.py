"""The bytes of a whole chunk of records: where characters stand, and the rows that came of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NULL_BETWEEN = re.compile(rb"\}[ \t\r\n]*n")
_SPACE = np.frombuffer(b" \t\r\n", np.uint8)
ASCII = 0x7F
_BEYOND = np.uint64(0x8080808080808080)


@dataclass(frozen=True)
class Chunk:
    """Documents with a line feed between each other, and where each starts; the last entry of
    ``starts`` is where the next one would.
    """

    whole: pa.Buffer
    starts: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        return np.frombuffer(self.whole, np.uint8)

    def after(self, first: int) -> pa.Buffer:
        """The documents from the one with that number on."""
        return self.whole.slice(int(self.starts[first]))


def bytes_of(values: pa.Array) -> tuple[pa.Buffer, np.ndarray]:
    """The bytes of all values, text or binary without nulls, and where each starts; the last entry
    is where the next one would.
    """
    large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    _, offsets, data = values.buffers()
    kind = np.int64 if large else np.int32
    starts = np.frombuffer(offsets, kind)[values.offset :][: len(values) + 1].astype(np.int64)
    if data is None:
        return pa.py_buffer(b""), starts
    return data.slice(int(starts[0]), int(starts[-1] - starts[0])), starts - starts[0]


def mask_of(found: pa.BooleanArray) -> np.ndarray:
    """The same for NumPy, as an array of its own. It has no nulls."""
    mask: np.ndarray = found.to_numpy(zero_copy_only=False)
    return mask


def having(places: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which values have a byte at one of the places; ``starts`` as in ``bytes_of``."""
    found = np.zeros(len(starts) - 1, dtype=bool)
    found[np.searchsorted(starts, places, side="right") - 1] = True
    return found


def beyond_ascii(codes: np.ndarray, most: int) -> np.ndarray | None:
    """The places of bytes beyond ASCII; None if they are in more than ``most`` words of 8 bytes.

    Most texts have hardly any, so words are looked at first.
    """
    end = len(codes) // 8 * 8
    marked = (codes[:end].view("<u8") & _BEYOND) != 0
    if np.count_nonzero(marked) > most:
        return None
    near = (8 * np.flatnonzero(marked)[:, np.newaxis] + np.arange(8)).ravel()
    places = np.concatenate((near, np.arange(end, len(codes))))
    beyond: np.ndarray = places[codes[places] > ASCII]
    return beyond


def joined(texts: pa.StringArray) -> Chunk:
    """All texts, with a line feed between each other."""
    if pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.string())
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    lengths = pc.binary_length(texts).to_numpy().astype(np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths + 1)))
    return Chunk(pc.binary_join(whole, "\n")[0].as_buffer(), starts)


def counts(chunk: Chunk, mark: bytes) -> np.ndarray:
    """How often each document has the byte, wherever it stands."""
    places = np.flatnonzero(chunk.codes == mark[0])
    found: np.ndarray = np.diff(np.searchsorted(places, chunk.starts))
    return found


def unbalanced(chunk: Chunk) -> np.ndarray:
    """Which documents do not have as many closing marks as opening ones, also counted in text."""
    one, two, three, four = (counts(chunk, mark) for mark in (b"{", b"}", b"[", b"]"))
    differ: np.ndarray = (one != two) | (three != four)
    return differ


def maybe_strange(chunk: Chunk) -> bool:
    """Whether a NUL, ``NaN``, ``Infinity`` or null after an object may stand anywhere.

    Each document begins and ends with braces.
    """
    codes = chunk.codes
    return (
        codes.min(initial=1) == 0
        or bool((_following(codes, b"N") == ord("a")).any())
        or bool((_following(codes, b"I") == ord("n")).any())
        or _null_after_object(chunk)
    )


def _null_after_object(chunk: Chunk) -> bool:
    codes = chunk.codes
    places = np.flatnonzero(codes[:-1] == ord("}"))
    if np.array_equal(places, chunk.starts[1:-1] - 2):  # each ends a document
        return False
    following = codes[places + 1]
    if (following == ord("n")).any():
        return True
    spaced = places[np.isin(following, _SPACE)]
    # Between two documents stands one line feed and then a brace.
    if (codes[np.minimum(spaced + 2, len(codes) - 1)] == ord("{")).all():
        return False
    return _NULL_BETWEEN.search(chunk.whole) is not None


def _following(codes: np.ndarray, mark: bytes) -> np.ndarray:
    """The bytes after those that are the mark."""
    following: np.ndarray = codes[np.flatnonzero(codes[:-1] == mark[0]) + 1]
    return following


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
    def present(self) -> np.ndarray:
        """Which rows are not left out."""
        present: np.ndarray = self.records != _NONE
        return present

    @property
    def found(self) -> np.ndarray:
        """The indices of the records of these rows."""
        found: np.ndarray = self.records[self.present]
        return found


def portions(values: pa.Array, most: int, records: int) -> Iterator[range]:
    """The places of all values in order, in portions of at most so many bytes, or of one value, and
    of at most so many ``records``.
    """
    lengths = pc.binary_length(values)
    lengths = (pc.fill_null(lengths, 0) if lengths.null_count else lengths).to_numpy()
    ends = np.cumsum(lengths, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        fitting = int(np.searchsorted(ends, before + most, side="right"))
        end = max(start + 1, min(fitting, start + records))
        yield range(start, end)
        start = end
