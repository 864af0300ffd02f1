"""The public function: many records to rows, each by the way that surely reads it right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.compiled import can_compile, decode_at_once
from rivermouth.formats.strict_json.exact import decode_one_by_one
from rivermouth.formats.strict_json.guards import as_text
from rivermouth.formats.strict_json.pieces import Piece, Texts, portions
from rivermouth.formats.strict_json.settings import ColumnLike, JsonSettings
from rivermouth.formats.strict_json.types import schema_of

_RECORDS = 20_000
_BYTES = 32_000_000
"""So much is read at once: the compiled parser holds it in memory."""
_MOST = 2**30
"""A record of more bytes goes the exact way."""


@dataclass(frozen=True)
class Decoded:
    """What became of each record, in their order.

    ``rows`` is null for a bad record and for a null or empty value. ``reasons`` says why a record
    is bad, in at most 200 characters; it is null for all others.
    """

    rows: pa.StructArray
    reasons: pa.StringArray


@dataclass(frozen=True)
class StrictJson:
    """Decodes JSON records as ``docs/json.md`` says. It can be pickled."""

    schema: pa.Schema
    settings: JsonSettings

    @classmethod
    def of(cls, columns: Sequence[ColumnLike], settings: JsonSettings) -> StrictJson:
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
        empty = Decoded(pa.array([], row), pa.array([], pa.string()))
        return Decoded(
            pa.concat_arrays([empty.rows, *(each.rows for each in done)]),
            pa.concat_arrays([empty.reasons, *(each.reasons for each in done)]),
        )


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
    return Decoded(_in_order(pieces, len(values), row), reasons)


def _in_order(pieces: list[Piece], count: int, row: pa.StructType) -> pa.StructArray:
    """The rows at the indices of their records, null elsewhere."""
    if not pieces:
        return pa.nulls(count, row)
    whole = Piece.joined(pieces)
    if np.array_equal(whole.records, np.arange(count)):
        return whole.rows
    records = whole.found
    places, found = np.zeros(count, int), np.zeros(count, bool)
    places[records], found[records] = np.flatnonzero(whole.kept), True
    return whole.rows.take(pa.array(places, mask=~found))
