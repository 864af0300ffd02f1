"""From the texts of values of one column to an array of what the compiled parser would give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import bytes_of, mask_of
from rivermouth.formats.strict_json.numbers import JSON_NUMBER
from rivermouth.formats.strict_json.usual import fitting, form_of

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
