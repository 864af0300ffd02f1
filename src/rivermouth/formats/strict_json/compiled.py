"""The compiled way: a whole chunk at once.

Where the parser fails on a chunk, the records that it cannot parse are taken out first. It says at
which record it stopped, so it starts again after that one. Where it stops at nearly every record,
this would cost more than the exact way; so more and more records go the exact way without a trial.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rivermouth.formats.strict_json.document import is_one_document
from rivermouth.formats.strict_json.guards import holds_two_objects
from rivermouth.formats.strict_json.marks import joined, unbalanced
from rivermouth.formats.strict_json.parser import ReadAs, Unreadable, parse
from rivermouth.formats.strict_json.refine import refine
from rivermouth.formats.strict_json.settings import JsonSettings
from rivermouth.formats.strict_json.types import holds_map

_NEAR = 12
"""A new start costs about as much as this many records on the exact way."""


_FEW = 32
"""So few records are not split any more: they go the exact way."""

_MANY = 0.2


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
) -> list[Piece]:
    """Rows of the records that are surely good. ``records`` are indices of ``texts``, of those
    that ``guards.safe`` lets pass; all others must go the exact way.
    """
    if not len(records):
        return []
    numbers = settings.unit is not None
    narrow, wide = (pa.schema(list(ReadAs(numbers, each).kind(row))) for each in (False, True))
    try:
        pieces = [_read(texts, records, narrow)]
    except Unreadable:
        pieces = _readable(texts, records, narrow, wide)
    return [_refined(each, row, settings) for each in pieces]


def _read(texts: pa.StringArray, records: np.ndarray, read: pa.Schema) -> Piece:
    chosen = texts if len(records) == len(texts) else texts.take(records)
    return Piece(parse(joined(chosen).whole, len(records), read), records)


def _readable(
    texts: pa.StringArray, records: np.ndarray, narrow: pa.Schema, wide: pa.Schema
) -> list[Piece]:
    """What is left when the records are taken out that make the parser fail."""
    chosen = texts.take(records)
    uneven = unbalanced(joined(chosen))
    if np.count_nonzero(uneven) > _MANY * len(uneven):  # such marks stand in text
        uneven[:] = False
    records = records[~(uneven | holds_two_objects(chosen))]
    records = _parsable(texts, records, narrow)
    try:
        return [_read(texts, records, narrow)]
    except Unreadable:
        return [*_halves(texts, records, wide)]


def _parsable(
    texts: pa.StringArray, records: np.ndarray, read: pa.Schema, scanned: bool = False
) -> np.ndarray:
    """The records without those that cannot be parsed, and perhaps without some more."""
    chunk = joined(texts.take(records))
    kept = np.ones(len(records), dtype=bool)
    start, leap = 0, 1
    while start < len(records):
        try:
            parse(chunk.after(start), len(records) - start, read)
            break
        except Unreadable as fault:
            if fault.parsed:
                break
            if fault.row is None:
                before, rest = records[:start][kept[:start]], records[start:]
                rest = _scanned(texts, rest) if not scanned else rest[:0]
                return np.concatenate((before, _parsable(texts, rest, read, scanned=True)))
            leap = leap * 2 if fault.row < _NEAR else 1
            bad = start + fault.row
            kept[bad : bad + leap] = False
            start = bad + leap
    return records[kept]


def _scanned(texts: pa.StringArray, records: np.ndarray) -> np.ndarray:
    """The records that are one document, by a parser that looks at each alone."""
    chosen = texts.take(pa.array(records)).to_pylist()
    sound = np.fromiter(map(is_one_document, chosen), dtype=bool, count=len(records))
    kept: np.ndarray = records[sound]
    return kept


def _halves(texts: pa.StringArray, records: np.ndarray, read: pa.Schema) -> Iterator[Piece]:
    """What can be read: all, or of its halves what can be read."""
    try:
        if len(records):
            yield _read(texts, records, read)
    except Unreadable:
        if len(records) > _FEW:
            for half in np.array_split(records, 2):
                yield from _halves(texts, half, read)


def _refined(piece: Piece, row: pa.StructType, settings: JsonSettings) -> Piece:
    found = refine(piece.rows, row, settings.unit)
    if found.doubtful is None or not found.doubtful.any():
        return Piece(found.array, piece.records)
    sure = ~found.doubtful
    return Piece(found.array.filter(pa.array(sure)), piece.records[sure])
