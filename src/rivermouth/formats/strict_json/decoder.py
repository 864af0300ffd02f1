"""The public function: many records to rows, each by the way that surely reads it right.

Those of one layout are read first (``layout``), and the parser reads what is left. Where it fails,
the records of a common form are found (``guards.common_form``) and read at once. So few bad records
do not cost more than one pass over the others. Records of another form go the exact way, but for
many of them this would cost more: then the parser tries them, too. It says at which record it
stopped, so it starts again after that one. Where it stops at nearly every record, more and more
records go the exact way without a trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.arrow import NO_FIELD, Decoded, joined
from rivermouth.formats.strict_json.chunk import Piece, Texts, mask_of, portions, unbalanced
from rivermouth.formats.strict_json.columns import ReadAs, Unreadable, parse, refine
from rivermouth.formats.strict_json.document import is_one_document
from rivermouth.formats.strict_json.guards import (
    as_text,
    common_form,
    fitting,
    framed,
    holds_two_objects,
    safe,
)
from rivermouth.formats.strict_json.layout import read_by_layout
from rivermouth.formats.strict_json.types import JsonSettings, holds_map, schema_of, settings_of
from rivermouth.formats.strict_json.values import decode_one_by_one, without_field

if TYPE_CHECKING:
    from rivermouth.config import Column

_FIRST = 500
"""So many records are parsed first: what fails there costs little."""

_NEAR = 12
"""A new start costs about as much as this many records on the exact way."""

_FEW = 32
"""So few records are not split any more: they go the exact way."""

_SOME = 500
"""So few records go the exact way, if all but a twentieth have a layout."""

_MANY = 0.2


@dataclass(frozen=True)
class _Schemas:
    """``narrow``: what the parser reads fast. ``wide``: what fits hardly fails."""

    narrow: pa.Schema
    wide: pa.Schema


def can_compile(row: pa.StructType, settings: JsonSettings) -> bool:
    """Whether the compiled way reads records of such rows. All other settings only take more
    records, and do not change what the others give.
    """
    return not holds_map(row) and "any_case" not in settings.lenient


def decode_at_once(given: Texts, row: pa.StructType, settings: JsonSettings) -> list[Piece]:
    """Rows of the records that are surely good; all others must go the exact way."""
    numbers = settings.unit is not None
    read = _Schemas(*(pa.schema(list(ReadAs(numbers, w).kind(row))) for w in (False, True)))
    pieces, left = read_by_layout(given, pa.struct(list(read.narrow)))
    if not pieces or len(left) > min(_SOME, len(given) // 20):
        pieces += _by_parser(left, read)
    return [_refined(each, row, settings) for each in _merged(pieces)]


def _by_parser(given: Texts, read: _Schemas) -> list[Piece]:
    """The same, before they are refined."""
    pieces: list[Piece] = []
    start, count = 0, _FIRST
    while start < len(given):
        end = start + count if start + 2 * count < len(given) else len(given)
        try:
            pieces += _read(_visible(given.part(start, end)), read.narrow)
        except Unreadable:
            pieces += _by_form(given.part(start, len(given)), read)
            break
        start, count = end, 4 * count
    return pieces


def _merged(pieces: list[Piece]) -> list[Piece]:
    """The pieces of the same types as one."""
    kinds = dict.fromkeys(each.rows.type for each in pieces)
    return [Piece.joined([each for each in pieces if each.rows.type == kind]) for kind in kinds]


def _framed(given: Texts) -> Texts:
    texts, mask = framed(given.texts)
    return Texts(texts, given.records).only(mask)


def _visible(given: Texts) -> Texts:
    """The records that the parser may see."""
    candidates = _framed(given)
    return candidates.only(safe(candidates.texts, candidates.chunk))


def _read(given: Texts, read: pa.Schema) -> list[Piece]:
    if not len(given):
        return []
    rows = parse(given.chunk.whole, len(given), read)
    return [Piece(rows, given.records)]


def _by_form(given: Texts, read: _Schemas) -> list[Piece]:
    """What is left when the records are taken out that may make the parser fail."""
    texts, inside = framed(given.texts)
    form = common_form(texts, pa.struct(list(read.narrow)))
    of_form = inside & fitting(texts, form) if form else np.zeros(len(given), dtype=bool)
    candidates = Texts(texts, given.records)
    safely = candidates.only(of_form)
    try:
        pieces = _read(safely, read.narrow)
    except Unreadable:
        pieces = _by_trial(safely, read)
    left = inside & ~of_form
    if np.count_nonzero(left) > _MANY * len(given):
        others = candidates.only(left)
        pieces += _by_trial(others.only(safe(others.texts, others.chunk)), read)
    return pieces


def _by_trial(given: Texts, read: _Schemas) -> list[Piece]:
    """The same for records of any form, by the places where the parser fails."""
    uneven = unbalanced(given.chunk)
    if np.count_nonzero(uneven) > _MANY * len(uneven):  # such marks stand in text
        uneven[:] = False
    given = _parsable(given.only(~(uneven | holds_two_objects(given.texts))), read.narrow)
    try:
        return _read(given, read.narrow)
    except Unreadable:
        return [*_halves(given, read.wide)]


def _parsable(given: Texts, read: pa.Schema, scanned: bool = False) -> Texts:
    """The records without those that cannot be parsed, and perhaps without some more."""
    chunk = given.chunk
    kept = np.ones(len(given), dtype=bool)
    start, leap = 0, 1
    while start < len(given):
        try:
            parse(chunk.after(start), len(given) - start, read)
            break
        except Unreadable as fault:
            if fault.parsed:
                break
            if fault.row is None:
                if scanned:
                    kept[start:] = False
                    break
                sound = [is_one_document(each) for each in given.texts[start:].to_pylist()]
                kept[start:] = sound
                return _parsable(given.only(kept), read, scanned=True)
            leap = leap * 2 if fault.row < _NEAR else 1
            bad = start + fault.row
            kept[bad : bad + leap] = False
            start = bad + leap
    return given.only(kept)


def _halves(given: Texts, read: pa.Schema) -> Iterator[Piece]:
    """What can be read: all, or of its halves what can be read."""
    try:
        yield from _read(given, read)
    except Unreadable:
        if len(given) > _FEW:
            middle = len(given) // 2
            for half in (given.part(0, middle), given.part(middle, len(given))):
                yield from _halves(half, read)


def _refined(piece: Piece, row: pa.StructType, settings: JsonSettings) -> Piece:
    found = refine(piece.rows, row, settings.unit)
    whole = Piece(found.array, piece.records)
    return whole if found.doubtful is None else whole.only(~found.doubtful)


def decoder(columns: Sequence[Column], settings: Mapping[str, Any]) -> StrictJson:
    """What decodes values and message keys that are JSON objects."""
    return StrictJson.of(columns, settings_of(settings))


_RECORDS = 20_000
_BYTES = 32_000_000
"""So much is read at once: the compiled parser holds it in memory."""
BAD = "RM603"
"""The code of a value that is not one JSON object that fits the columns."""
_MOST = 2**30
"""A record of more bytes goes the exact way."""


@dataclass(frozen=True)
class StrictJson:
    """Decodes JSON records as ``docs/json.md`` says. It can be pickled."""

    schema: pa.Schema
    settings: JsonSettings

    @classmethod
    def of(cls, columns: Sequence[Column], settings: JsonSettings) -> StrictJson:
        return cls(schema_of(columns), settings)

    def decode(self, values: pa.Array | pa.ChunkedArray) -> Decoded:
        """Never raises for what a record holds. ``values`` are binary."""
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        row = pa.struct(list(self.schema))
        done = [
            _decoded(each.slice(part.start, len(part)), row, self.settings)
            for each in chunks
            for part in portions(each, _BYTES, _RECORDS)
        ]
        if len(done) == 1:
            return done[0]
        return joined(done, row)


def _decoded(values: pa.Array, row: pa.StructType, settings: JsonSettings) -> Decoded:
    length = pc.fill_null(pc.binary_length(values), 0).to_numpy()
    left = length > 0
    pieces: list[Piece] = []
    if can_compile(row, settings) and length.sum() <= _MOST:
        texts = as_text(pc.fill_null(values, pa.scalar(b"", values.type)))
        pieces = decode_at_once(Texts(texts, np.arange(len(values))), row, settings)
        for each in pieces:
            left[each.found] = False
    reasons = pa.nulls(len(values), pa.string())
    if left.any():
        records = np.flatnonzero(left)
        rows, why = decode_one_by_one(values.take(pa.array(records)).to_pylist(), row, settings)
        if rows.null_count < len(rows):
            pieces.append(Piece(rows, records))
        reasons = pc.replace_with_mask(reasons, pa.array(left), pa.array(why, pa.string()))
    found = Decoded.of(_in_order(pieces, len(values), row), reasons, BAD)
    return found.with_faults(_without_field(found.rows, values, row, settings))


def _without_field(
    rows: pa.StructArray, values: pa.Array, row: pa.StructType, settings: JsonSettings
) -> dict[int, tuple[str, str]]:
    """The records that have no field of the columns: the code, and what they have."""
    columns = rows.flatten()
    if settings.empty or not all(each.null_count for each in columns):  # as nearly always
        return {}
    nothing = pc.and_(rows.is_valid(), reduce(pc.and_, (each.is_null() for each in columns)))
    found = (
        (at, without_field(values[at].as_py(), row, settings))
        for at in np.flatnonzero(mask_of(nothing)).tolist()
    )
    return {at: (NO_FIELD, why) for at, why in found if why is not None}


def _in_order(pieces: list[Piece], count: int, row: pa.StructType) -> pa.StructArray:
    """The rows at the indices of their records, null elsewhere."""
    if not pieces:
        return pa.nulls(count, row)
    whole = Piece.joined(pieces)
    if np.array_equal(whole.records, np.arange(count)):
        return whole.rows
    records = whole.found
    places, found = np.zeros(count, int), np.zeros(count, bool)
    places[records], found[records] = np.flatnonzero(whole.present), True
    return whole.rows.take(pa.array(places, mask=~found))
