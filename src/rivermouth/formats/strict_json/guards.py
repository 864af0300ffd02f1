"""Which records the compiled parser may see.

That parser takes more than JSON, and a document ``null`` crashes it. So a record goes to it only
if it is known to hold nothing of that kind. What is refused here may still be good: the exact way
decides. All checks look at a whole chunk at once.
"""

from __future__ import annotations

import re
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.settings import DEPTH

_SPACE = " \t\r\n"
_AFTER_OBJECT = r"\}[ \t\r\n]*"
# The parser ends at a NUL as if the chunk ended; null between objects crashes it; and it takes NaN
# and Infinity. In text these are harmless, but a record that has them is rare.
_STRANGE = rf"\x00|{_AFTER_OBJECT}n|[:\[,][ \t\r\n]*-?(?:NaN|Inf)"
_NULL_BETWEEN = re.compile(rb"\}[ \t\r\n]*n")
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
    if _maybe_strange(joined(texts)):
        checks.append(~_numpy(pc.match_substring_regex(texts, _STRANGE)))
    long = _numpy(pc.greater_equal(pc.binary_length(texts), 2 * DEPTH))
    if long.any():
        marks = reduce(
            pc.add, (pc.count_substring(texts.filter(pa.array(long)), each) for each in "{[")
        )
        checks.append(~long)
        checks[-1][long] = _numpy(pc.less_equal(marks, DEPTH))
    return texts, np.logical_and.reduce(checks)


def holds_two_objects(texts: pa.StringArray) -> np.ndarray:
    """Which texts may hold two documents. A text that begins and ends with braces, and of which
    this says False, is one document or none.
    """
    return _numpy(pc.match_substring_regex(texts, _TWO_OBJECTS))


def joined(texts: pa.StringArray) -> pa.Buffer:
    """All texts, with a line feed between each other."""
    if pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.string())
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    buffer: pa.Buffer = pc.binary_join(whole, "\n")[0].as_buffer()
    return buffer


def _framed(texts: pa.StringArray) -> np.ndarray:
    return _numpy(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")))


def _maybe_strange(whole: pa.Buffer) -> bool:
    codes = np.frombuffer(whole, np.uint8)
    return (
        not codes.all()
        or _holds(codes, b"Na")
        or _holds(codes, b"In")
        or _NULL_BETWEEN.search(whole) is not None
    )


def _holds(codes: np.ndarray, pair: bytes) -> bool:
    """Whether the two bytes stand next to each other. Quicker than the search for a text."""
    first = np.flatnonzero(codes[:-1] == pair[0])
    return bool((codes[first + 1] == pair[1]).any())


def _numpy(mask: pa.BooleanArray) -> np.ndarray:
    found: np.ndarray = mask.to_numpy(zero_copy_only=False)
    return found
