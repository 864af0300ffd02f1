"""Bytes and text that were found in records, as Arrow columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.found import Found, Spans, spans_of
from rivermouth.formats.shredded.lanes import Flags


def binary(found: Found | None, site: Site) -> pa.Array:
    """Bytes as they are. Spans stand in the order of the bytes."""
    return _bytes(spans_of(found), site)


def _bytes(spans: Spans, site: Site) -> pa.Array:
    offsets = np.empty(2 * len(spans.starts) + 1, np.int32)
    offsets[:-1:2], offsets[1:-1:2] = spans.starts, spans.starts + spans.lengths
    offsets[-1] = offsets[-2] if len(offsets) > 1 else 0
    buffers = [None, pa.py_buffer(offsets), site.buffer]
    both = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return both.take(pa.array(np.arange(0, len(both), 2, dtype=np.int32)))


def text(found: Found | None, site: Site) -> pa.Array:
    """UTF-8."""
    spans = spans_of(found)
    values = _bytes(spans, site)
    offsets, data = values.buffers()[1:]
    if data is not None and data.size and np.frombuffer(data, np.int8).min() >= 0:  # ASCII
        return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, data])
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        codes = np.frombuffer(data, np.uint8).copy()
        bad = _no_text(codes, np.frombuffer(offsets, np.int32)[1 : len(values) + 1])
        site.refuse(bad, "text that is not UTF-8")
        codes[np.repeat(bad, spans.lengths)] = 0
        return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(codes)])


def _no_text(codes: NDArray[np.uint8], ends: NDArray[np.int32]) -> Flags:
    """Which values are not UTF-8, by the table of well-formed sequences in Unicode (3.9).

    ``ends``: where each ends, and the next begins.
    """
    at = np.flatnonzero(codes >= 0x80)
    codes = np.concatenate((codes, np.zeros(3, np.uint8)))
    code, of = codes[at], np.searchsorted(ends, at, side="right")
    more = _MORE[code]
    wrong = (code >= 0xC0) & (more == 0)
    wrong |= (more > 0) & (at + more >= ends[of])
    second, third, fourth = (codes[at + each] for each in (1, 2, 3))
    wrong |= (more > 0) & ((second < _LEAST[code]) | (second > _MOST_SECOND[code]))
    wrong |= (more > 1) & (third & 0xC0 != 0x80) | (more > 2) & (fourth & 0xC0 != 0x80)
    # Where all that begin are whole, no other byte may be one that goes on.
    begun = np.bincount(of, more, len(ends)) - np.bincount(of, code < 0xC0, len(ends))
    bad: Flags = (begun != 0) | (np.bincount(of, wrong, len(ends)) > 0)
    return bad


_CODES = np.arange(256)
_MORE = np.select([_CODES < 0xC2, _CODES < 0xE0, _CODES < 0xF0, _CODES < 0xF5], [0, 1, 2, 3], 0)
"""How many bytes follow a first one."""
_LEAST = np.full(256, 0x80)
_LEAST[[0xE0, 0xF0]] = 0xA0, 0x90
_MOST_SECOND = np.full(256, 0xBF)
_MOST_SECOND[[0xED, 0xF4]] = 0x9F, 0x8F


_HEX = np.frombuffer(b"".join(b"%02x" % each for each in range(256)), "S2")
_DASHES = (8, 13, 18, 23)


def uuids(found: Found | None, site: Site) -> pa.Array:
    """16 bytes as text, for example ``6f1e5c2a-0b1d-4a53-9a6e-0a5f5d6c7b8e``."""
    starts = spans_of(found).starts
    digits = _HEX[site.data.codes[starts[:, np.newaxis] + np.arange(16)]].view("S1")
    whole = np.full((len(starts), 36), b"-", "S1")
    whole[:, [each for each in range(36) if each not in _DASHES]] = digits.reshape(-1, 32)
    offsets = np.arange(len(starts) + 1, dtype=np.int32) * 36
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(starts), buffers)
