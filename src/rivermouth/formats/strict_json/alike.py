"""Records that are laid out alike: read by where their quotation marks stand, without a parser.

A record has the layout if it has as many quotation marks, no escape and no control character, and
if every byte outside of its values is that of the layout. Then text stands between two neighbouring
quotation marks, and each other value is looked at by itself. So nothing of the record is left that
was not looked at. A record that is not surely good is left to the other ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rivermouth.formats.strict_json.layout import Layout, Path, layout_of
from rivermouth.formats.strict_json.marks import bytes_of, having
from rivermouth.formats.strict_json.pieces import Piece, Texts
from rivermouth.formats.strict_json.slots import array_of

_LEAST = 2_000
"""For fewer records the parser is as fast: each pass has a price of its own."""
_TRIED = 200
"""So many records are tried first: where a layout is not theirs, that costs little."""
_SAMPLES = 2
_LAYOUTS = 4
_BYTES = 3 << 19
"""So many are read at once: what is made of them stays in the cache of the processor."""
_QUOTE, _ESCAPE, _SPACE = b'"\\ '

_Read = tuple[Piece, np.ndarray]
"""The rows of the records that have a layout, and which of those given these are."""
_latest: dict[pa.StructType, Layout] = {}
"""For rows of a type a layout by which this process has read records. The next may have it, too."""


def read_alike(given: Texts, row: pa.StructType) -> tuple[list[Piece], Texts]:
    """The rows of records that share a layout with many others; and the records that are left.

    ``row`` is of the types that the parser reads, as the rows are.
    """
    pieces: list[Piece] = []
    for turn in range(_LAYOUTS):
        if len(given) < _LEAST:
            break
        read = (_by_latest(given, row) if turn == 0 else []) or _by_sample(given, row)
        if not read:
            break
        pieces += [piece for piece, _ in read]
        given = given.only(~np.concatenate([good for _, good in read]))
    return pieces, given


def _by_latest(given: Texts, row: pa.StructType) -> list[_Read]:
    """By the layout of the records before these; nothing if not half of the first part have it."""
    layout = _latest.get(row)
    if layout is None:
        return []
    parts = [*given.parts(_BYTES)]
    first = _read(parts[0], layout, row)
    if 2 * np.count_nonzero(first[1]) < len(parts[0]):
        _latest.pop(row, None)
        return []
    return [first, *(_read(each, layout, row) for each in parts[1:])]


def _by_sample(given: Texts, row: pa.StructType) -> list[_Read]:
    """By the layout of one of them; nothing if it is not that of half of the first ones."""
    layout = _layout(given, row)
    if layout is None:
        return []
    _latest.setdefault(row, layout)
    return [_read(each, layout, row) for each in given.parts(_BYTES)]


def _layout(given: Texts, row: pa.StructType) -> Layout | None:
    """A layout by which at least half of the first records are read."""
    first = given.part(0, _TRIED)
    for sample in first.texts[:: _TRIED // _SAMPLES].to_pylist():
        layout = layout_of(sample.encode(), row)
        if layout and 2 * np.count_nonzero(_read(first, layout, row)[1]) >= _TRIED:
            return layout
    return None


def _read(given: Texts, layout: Layout, row: pa.StructType) -> _Read:
    laid = _Laid.of(given.texts, layout)
    good = np.ones(len(laid.rows), dtype=bool)
    found: dict[Path, pa.Array] = {}
    for slot, span in zip(layout.slots, laid.spans, strict=True):
        if slot.kind is None and slot.quoted:
            continue
        values, fits = array_of(laid.marks.between(*span), slot.kind, slot.quoted)
        good &= fits
        if values is not None:
            found[slot.path] = values
    rows = _assembled(row, (), found, layout, len(good))
    mask = np.zeros(len(given), dtype=bool)
    mask[laid.rows[good]] = True
    return Piece(rows, given.records[laid.rows]).only(good), mask


def _assembled(
    kind: pa.DataType, path: Path, found: Mapping[Path, pa.Array], layout: Layout, count: int
) -> pa.Array:
    """The values of the column at the path: what was found there or inside, else null."""
    if path in found:
        return found[path]
    if path not in layout.objects:
        return pa.nulls(count, kind)
    inside = [_assembled(each.type, (*path, each.name), found, layout, count) for each in kind]
    return pa.StructArray.from_arrays(inside, fields=list(kind))


@dataclass(frozen=True)
class _Marks:
    """Where quotation marks stand in a chunk of records.

    Record ``n`` has the bytes from ``starts[n]`` to ``starts[n + 1]``, and the quotation marks
    ``places[first[n]:first[n + 1]]``. It is ``plain`` without escapes and control characters.
    """

    data: pa.Buffer
    codes: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    first: np.ndarray
    plain: np.ndarray

    @classmethod
    def of(cls, texts: pa.StringArray) -> _Marks:
        data, starts = bytes_of(texts)
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == _QUOTE)
        plain = np.ones(len(texts), dtype=bool)
        escape = codes == _ESCAPE
        if escape.any():
            plain &= ~having(np.flatnonzero(escape), starts)
        if codes.min(initial=_SPACE) < _SPACE:
            plain &= ~having(np.flatnonzero(codes < _SPACE), starts)
        return cls(data, codes, starts, places, np.searchsorted(places, starts), plain)

    def same(self, at: np.ndarray, run: bytes) -> np.ndarray:
        """At which of the places those bytes begin."""
        last = len(self.codes) - len(run)
        if last < 0:
            return np.zeros(len(at), dtype=bool)
        windows: np.ndarray = np.ndarray(last + 1, f"S{len(run)}", self.data, strides=(1,))
        found: np.ndarray = windows[np.clip(at, 0, last)] == run
        return found & (at >= 0) & (at <= last)

    def between(self, starts: np.ndarray, ends: np.ndarray) -> pa.StringArray:
        """The texts from each start to its end, which is not after the next start."""
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, ends
        both = pa.Array.from_buffers(
            pa.string(), max(len(offsets) - 1, 0), [None, pa.py_buffer(offsets), self.data]
        )
        return both.take(pa.array(np.arange(0, len(both), 2, dtype=np.int32)))


@dataclass(frozen=True)
class _Laid:
    """The records that have a layout, by their indices in the chunk, and for each of its slots
    where the values of these records start and end.
    """

    marks: _Marks
    rows: np.ndarray
    spans: list[tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, texts: pa.StringArray, layout: Layout) -> _Laid:
        marks = _Marks.of(texts)
        # What is shorter than the layout would be compared with more bytes than there are.
        long = np.diff(marks.starts) >= sum(map(len, layout.runs))
        rows = np.flatnonzero(marks.plain & long & (np.diff(marks.first) == layout.quotes))
        first, starts, ends = marks.first[rows], marks.starts[rows], marks.starts[rows + 1]
        fits, known = marks.same(starts, layout.runs[0]), layout.runs[0].count(b'"')
        start, spans = starts + len(layout.runs[0]), []
        for slot, run in zip(layout.slots, layout.runs[1:], strict=True):
            # The next quotation mark is in the run, and is its first byte after text.
            before = run.find(b'"')
            end = ends - len(run) if before < 0 else marks.places[first + known] - before
            fits &= marks.same(end, run) & (slot.quoted | (start < end))
            spans.append((start, end))
            start, known = end + len(run), known + run.count(b'"')
        fits &= start == ends
        if not fits.all():
            rows, spans = rows[fits], [(start[fits], end[fits]) for start, end in spans]
        return cls(marks, rows, spans)
