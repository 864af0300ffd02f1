"""Records that are laid out alike: read by where their quotation marks stand, without a parser.

A producer writes its records by one program: the same names in the same order, with the same space
between them. Only the values differ. A layout says which bytes stay, and where values stand.

A record has the layout if it has as many quotation marks, no escape and no control character, and
if every byte outside of its values is that of the layout. Then text stands between two neighbouring
quotation marks, and each other value is looked at by itself. So nothing of the record is left that
was not looked at. A record that is not surely good is left to the other ways.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.chunk import Piece, Texts, bytes_of, having, mask_of
from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.guards import fitting, form_of
from rivermouth.formats.strict_json.scalars import JSON_NUMBER, Bad

_TOKENS = re.compile(rb'"[^"]*"|[{}\[\]:,]|[ \t\r\n]+|[^ \t\r\n{}\[\]:,"]+')
_LONGEST = 10_000
_MOST = 40
"""With more names the parser is as fast: each value has a price of its own."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """Where a value stands that is no object. ``kind``: the type of its column, None if it has
    none. ``quoted``: it is text, and stands between quotation marks, which belong to the runs.
    """

    path: Path
    kind: pa.DataType | None
    quoted: bool


@dataclass(frozen=True)
class Layout:
    """``runs``: the bytes before, between and after the values, one more than ``slots``.

    ``objects``: the paths of the objects. No path comes twice.
    """

    runs: tuple[bytes, ...]
    slots: tuple[Slot, ...]
    objects: frozenset[Path]

    @property
    def quotes(self) -> int:
        """How many quotation marks a record has."""
        return sum(each.count(b'"') for each in self.runs)


def layout_of(sample: bytes, row: pa.StructType) -> Layout | None:
    """That of a record. None: it is bad, it does not surely fit the columns, it is large, or it
    has arrays or escapes, which differ from record to record. ``row`` is of the types that the
    parser reads.
    """
    if len(sample) > _LONGEST or b"\\" in sample or b"[" in sample:
        return None
    try:
        read(sample, spelt=False)
        return _Walk(row).through(sample)
    except (Bad, _Unfit):
        return None


class _Unfit(Exception):
    """The record cannot be a sample."""


@dataclass
class _Walk:
    """A walk through the tokens of a record, which is JSON. Raises _Unfit."""

    row: pa.StructType
    path: list[str] = field(default_factory=list)
    run: bytes = b""
    runs: list[bytes] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)
    objects: set[Path] = field(default_factory=set)

    def through(self, sample: bytes) -> Layout:
        before = b""
        for token in _TOKENS.findall(sample):
            if token.isspace():
                self.run += token
            elif token in b"{}:,":
                self._mark(token)
                before = token
            elif before == b":":
                self._value(token)
                before = b""
            else:
                self._name(token)
        runs = (*self.runs, self.run)
        return Layout(runs, tuple(self.slots), frozenset(self.objects))

    def _mark(self, token: bytes) -> None:
        self.run += token
        if token == b"{":
            kind = self._kind()
            if kind is not None and not pa.types.is_struct(kind):
                raise _Unfit
            self.objects.add(tuple(self.path))
            self.path.append("")
        elif token == b"}":
            self.path.pop()

    def _name(self, token: bytes) -> None:
        self.run += token
        self.path[-1] = token[1:-1].decode()
        path = tuple(self.path)
        if path in self.seen or len(self.seen) == _MOST:
            raise _Unfit
        self.seen.add(path)

    def _value(self, token: bytes) -> None:
        kind, quoted = self._kind(), token.startswith(b'"')
        if quoted and kind is not None and not _in_text(kind):
            raise _Unfit
        mark = b'"' if quoted else b""
        self.runs.append(self.run + mark)
        self.run = mark
        self.slots.append(Slot(tuple(self.path), kind, quoted))

    def _kind(self) -> pa.DataType | None:
        """The type of the column at the path; None where there is none."""
        kind: pa.DataType | None = self.row
        for name in self.path:
            at = kind.get_field_index(name) if kind is not None and pa.types.is_struct(kind) else -1
            kind = kind.field(at).type if kind is not None and at >= 0 else None
        return kind


def _in_text(kind: pa.DataType) -> bool:
    """Whether text can be a value of the type."""
    return bool(pa.types.is_string(kind) or pa.types.is_decimal(kind))


_SCALAR = rf"(?:{JSON_NUMBER.pattern}|true|false|null)"
_FLOATING = {
    bits: rf"-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,25}})?(?:[eE][+-]?[0-9]{{1,{exponent}}})?"
    for bits, exponent in ((64, 2), (32, 1))
}
"""By the bits of the type: numbers that are neither too large nor too small for it."""
_ZERO, _NINE = b"09"


def array_of(
    texts: pa.StringArray, kind: pa.DataType | None, quoted: bool
) -> tuple[pa.Array | None, np.ndarray]:
    """The values, and which of them surely fit; those that do not are null.

    ``quoted``: they are text without escapes; else what is no text, and none is empty. Without
    ``kind`` there is no column: None, and which are JSON. Then they are not ``quoted``.
    """
    if kind is None:
        return None, _matching(texts, _SCALAR)
    if quoted and pa.types.is_string(kind):
        return texts, np.ones(len(texts), dtype=bool)
    fits = _fitting(texts, kind)
    values = texts if fits.all() else pc.if_else(pa.array(fits), texts, None)
    if not (quoted or fits.all()):
        fits |= mask_of(pc.equal(texts, "null"))
    return _cast(values, kind), fits


def _fitting(texts: pa.StringArray, kind: pa.DataType) -> np.ndarray:
    """Which texts are a value of the type, and not null."""
    if pa.types.is_integer(kind):
        return _whole(texts, kind)
    if pa.types.is_floating(kind):
        return _matching(texts, _FLOATING[kind.bit_width])
    if pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return _matching(texts, form_of(kind))
    return np.zeros(len(texts), dtype=bool)


def _whole(texts: pa.StringArray, kind: pa.DataType) -> np.ndarray:
    """The most are a few digits. A pattern looks at the others."""
    digits = len(str(2 ** (kind.bit_width - 1) - 1)) - 1
    data, starts = bytes_of(texts)
    codes, lengths = np.frombuffer(data, np.uint8), np.diff(starts)
    fits: np.ndarray = (lengths <= digits) & ((codes[starts[:-1]] != _ZERO) | (lengths == 1))
    if codes.min(initial=_ZERO) < _ZERO or codes.max(initial=_ZERO) > _NINE:
        fits &= mask_of(pc.ascii_is_decimal(texts))
    if not fits.all():
        left = ~fits
        fits[left] = _matching(texts.filter(pa.array(left)), form_of(kind))
    return fits


def _matching(texts: pa.StringArray, form: str) -> np.ndarray:
    return fitting(texts, rf"\A{form}\z")


def _cast(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), kind)
    return pc.equal(texts, "true") if pa.types.is_boolean(kind) else texts.cast(kind)


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


def read_by_layout(given: Texts, row: pa.StructType) -> tuple[list[Piece], Texts]:
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
