"""Which records the compiled parser may see.

That parser takes more than JSON, and a document ``null`` crashes it. So a record goes to it only
if it is known to hold nothing of that kind. What is refused here may still be good: the exact way
decides. All checks look at a whole chunk at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import counts, joined, maybe_strange
from rivermouth.formats.strict_json.settings import DEPTH

_SPACE = " \t\r\n"
_AFTER_OBJECT = r"\}[ \t\r\n]*"
# The parser ends at a NUL as if the chunk ended; null between objects crashes it; and it takes NaN
# and Infinity. In text these are harmless, but a record that has them is rare.
_STRANGE = rf"\x00|{_AFTER_OBJECT}n|[:\[,][ \t\r\n]*-?(?:NaN|Inf)"
_TWO_OBJECTS = rf"{_AFTER_OBJECT}\{{"


def as_text(values: pa.Array) -> tuple[pa.StringArray, np.ndarray]:
    """The values as text, and which of them are UTF-8; the others are empty text.

    The values are binary without nulls.
    """
    kind = pa.large_string() if pa.types.is_large_binary(values.type) else pa.string()
    try:
        return values.cast(kind), np.ones(len(values), dtype=bool)
    except pa.ArrowInvalid:
        valid = np.fromiter(map(_is_utf8, values.to_pylist()), dtype=bool, count=len(values))
        return pc.if_else(pa.array(valid), values, pa.scalar(b"", values.type)).cast(kind), valid


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def safe(texts: pa.StringArray) -> tuple[pa.StringArray, np.ndarray]:
    """The texts without space around them, and which of them the compiled parser may see."""
    checks = [_framed(texts)]
    if not checks[0].all():
        texts = pc.ascii_trim(texts, _SPACE)
        checks = [_framed(texts)]
    chunk = joined(texts)
    if maybe_strange(chunk):
        checks.append(~_numpy(pc.match_substring_regex(texts, _STRANGE)))
    if np.diff(chunk.starts).max(initial=0) > 2 * DEPTH:
        checks.append(counts(chunk, b"{") + counts(chunk, b"[") <= DEPTH)
    return texts, np.logical_and.reduce(checks)


def holds_two_objects(texts: pa.StringArray) -> np.ndarray:
    """Which texts may hold two documents. A text that begins and ends with braces, and of which
    this says False, is one document or none.
    """
    return _numpy(pc.match_substring_regex(texts, _TWO_OBJECTS))


def _framed(texts: pa.StringArray) -> np.ndarray:
    return _numpy(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")))


def _numpy(mask: pa.BooleanArray) -> np.ndarray:
    found: np.ndarray = mask.to_numpy(zero_copy_only=False)
    return found
