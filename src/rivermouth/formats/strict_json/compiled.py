"""The compiled way: a whole chunk at once.

Where the parser fails on a chunk, the records that it cannot parse are taken out first. It says at
which record it stopped, so it starts again after that one. Where it stops at nearly every record,
this would cost more than the exact way; so more and more records go the exact way without a trial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.guards import holds_two_objects, joined
from rivermouth.formats.strict_json.parser import ReadAs, Unreadable, parse
from rivermouth.formats.strict_json.refine import refine
from rivermouth.formats.strict_json.settings import JsonSettings
from rivermouth.formats.strict_json.types import holds_map

_NEAR = 8
"""A new start costs about as much as this many records on the exact way."""


@dataclass(frozen=True)
class Piece:
    """Rows, and the indices of their records, which rise."""

    rows: pa.StructArray
    records: np.ndarray


def can_compile(row: pa.StructType, settings: JsonSettings) -> bool:
    """Whether the compiled way reads records of such rows. All other settings only take more
    records, and do not change what the others give.
    """
    return not holds_map(row) and "any_case" not in settings.lenient


def decode_at_once(
    texts: pa.StringArray, records: np.ndarray, row: pa.StructType, settings: JsonSettings
) -> Piece:
    """Rows of the records that are surely good. ``records`` are indices of ``texts``, of those
    that ``guards.safe`` lets pass; all others must go the exact way.
    """
    numbers = settings.unit is not None
    narrow, wide = (pa.schema(list(ReadAs(numbers, each).kind(row))) for each in (False, True))
    for read in (narrow, narrow, wide):
        try:
            rows = parse(joined(texts.take(records)), len(records), read)
            return _refined(Piece(rows, records), row, settings)
        except Unreadable:
            if read is narrow:
                records = _parsable(texts, records, read)
    return Piece(pa.array([], row), records[:0])


def _parsable(texts: pa.StringArray, records: np.ndarray, read: pa.Schema) -> np.ndarray:
    """The records without those that make the parser fail, and perhaps some more."""
    records = records[~holds_two_objects(texts.take(records))]
    chosen = texts.take(records)
    whole = joined(chosen)
    lengths = pc.binary_length(chosen).to_numpy()
    starts = np.concatenate(([0], np.cumsum(lengths.astype(np.int64) + 1)))
    kept = np.ones(len(records), dtype=bool)
    start, leap = 0, 1
    while start < len(records):
        try:
            parse(whole.slice(int(starts[start])), len(records) - start, read)
            break
        except Unreadable as fault:
            if fault.row is None:  # all that is left can be parsed
                break
            leap = leap * 2 if fault.row < _NEAR else 1
            bad = start + fault.row
            kept[bad : bad + leap] = False
            start = bad + leap
    return records[kept]


def _refined(piece: Piece, row: pa.StructType, settings: JsonSettings) -> Piece:
    found = refine(piece.rows, row, settings.unit)
    if found.doubtful is None or not found.doubtful.any():
        return Piece(found.array, piece.records)
    sure = ~found.doubtful
    return Piece(found.array.filter(pa.array(sure)), piece.records[sure])
