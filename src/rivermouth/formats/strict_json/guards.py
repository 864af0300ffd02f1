"""Which records the compiled parser may see.

That parser takes more than JSON, and a document ``null`` crashes it. So a record goes to it only
if it is known to hold nothing of that kind. What is refused here may still be good: the exact way
decides. All checks look at a whole chunk at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import (
    ASCII,
    Chunk,
    beyond_ascii,
    bytes_of,
    counts,
    having,
    mask_of,
    maybe_strange,
)
from rivermouth.formats.strict_json.settings import DEPTH

_SPACE = " \t\r\n"
_AFTER_OBJECT = r"\}[ \t\r\n]*"
# The parser ends at a NUL as if the chunk ended; null between objects crashes it; and it takes NaN
# and Infinity. In text these are harmless, but a record that has them is rare.
_STRANGE = rf"\x00|{_AFTER_OBJECT}n|[:\[,][ \t\r\n]*-?(?:NaN|Inf)"
_AT_ONCE = 64
_FEW = 0.05
"""With so few bytes beyond ASCII, for each value, those that have one are looked at one by one."""
_TWO_OBJECTS = rf"{_AFTER_OBJECT}\{{"


def as_text(values: pa.Array) -> pa.StringArray:
    """The values, which are binary without nulls, as text. What is not UTF-8 is empty text."""
    data, starts = bytes_of(values)
    codes = np.frombuffer(data, np.uint8)
    if codes.max(initial=0) <= ASCII:
        return _unchecked(values)
    try:
        return values.cast(_text_of(values.type))
    except pa.ArrowInvalid:
        valid = pa.array(_valid(values, codes, starts))
        return _unchecked(pc.if_else(valid, values, pa.scalar(b"", values.type)))


def _text_of(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pa.types.is_large_binary(kind) else pa.string()


def _unchecked(values: pa.Array) -> pa.StringArray:
    """Values that are UTF-8, as text."""
    kind, buffers = _text_of(values.type), values.buffers()
    return pa.Array.from_buffers(kind, len(values), buffers, offset=values.offset)


def _valid(values: pa.Array, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Which values are UTF-8. There is one that is not."""
    valid = np.ones(len(values), dtype=bool)
    others = beyond_ascii(codes, int(_FEW * len(values)))
    if others is not None:
        few = having(others, starts)
        valid[few] = [_is_utf8(each) for each in values.filter(pa.array(few)).to_pylist()]
        return valid
    for start in range(0, len(values), _AT_ONCE):
        some = values.slice(start, _AT_ONCE)
        try:
            some.cast(pa.string())
        except pa.ArrowInvalid:
            valid[start : start + _AT_ONCE] = [_is_utf8(each) for each in some.to_pylist()]
    return valid


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def framed(texts: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """The texts without space around them, and which of them begin and end with braces."""
    mask = _framed(texts)
    if mask.all():
        return texts, mask
    texts = pc.ascii_trim(texts, _SPACE)
    return texts, _framed(texts)


def safe(texts: pa.StringArray, chunk: Chunk) -> np.ndarray:
    """Which of the framed texts the compiled parser may see. ``chunk`` has them joined."""
    checks = [np.ones(len(texts), dtype=bool)]
    if maybe_strange(chunk):
        checks.append(~mask_of(pc.match_substring_regex(texts, _STRANGE)))
    if np.diff(chunk.starts).max(initial=0) > 2 * DEPTH:
        checks.append(counts(chunk, b"{") + counts(chunk, b"[") <= DEPTH)
    passed: np.ndarray = np.logical_and.reduce(checks)
    return passed


def holds_two_objects(texts: pa.StringArray) -> np.ndarray:
    """Which texts may hold two documents. A text that begins and ends with braces, and of which
    this says False, is one document or none.
    """
    return mask_of(pc.match_substring_regex(texts, _TWO_OBJECTS))


def _framed(texts: pa.StringArray) -> np.ndarray:
    return mask_of(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")))
