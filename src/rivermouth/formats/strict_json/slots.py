"""From the texts of values of one column to an array of what the compiled parser would give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.usual import form_of

_SCALAR = r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)"
_FLOATING = {
    bits: rf"-?(?:0|[1-9][0-9]{{0,17}})(?:\.[0-9]{{1,25}})?(?:[eE][+-]?[0-9]{{1,{exponent}}})?"
    for bits, exponent in ((64, 2), (32, 1))
}
"""By the bits of the type: numbers that are neither too large nor too small for it."""


def array_of(
    texts: pa.StringArray, kind: pa.DataType | None, quoted: bool
) -> tuple[pa.Array | None, np.ndarray]:
    """The values, and which of them surely fit; those that do not are null.

    Without ``kind`` there is no column: None, and which are JSON. ``texts`` are not empty, where
    they are not ``quoted``: then they are text without escapes, else what is no text.
    """
    if kind is None:
        sure = np.ones(len(texts), dtype=bool)
        return None, sure if quoted else _matching(texts, _SCALAR)
    if quoted and pa.types.is_string(kind):
        return texts, np.ones(len(texts), dtype=bool)
    fits = _fitting(texts, kind)
    values = texts if fits.all() else pc.if_else(pa.array(fits), texts, None)
    if not (quoted or fits.all()):
        fits |= _numpy(pc.equal(texts, "null"))
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
    short = pc.less_equal(pc.binary_length(texts), digits)
    begun = pc.invert(pc.starts_with(texts, "0"))
    fits = _numpy(pc.and_(pc.and_(pc.ascii_is_decimal(texts), short), begun))
    if not fits.all():
        left = ~fits
        fits = fits.copy()
        fits[left] = _matching(texts.filter(pa.array(left)), form_of(kind))
    return fits


def _matching(texts: pa.StringArray, form: str) -> np.ndarray:
    return _numpy(pc.match_substring_regex(texts, rf"\A{form}\z"))


def _cast(texts: pa.StringArray, kind: pa.DataType) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), kind)
    return pc.equal(texts, "true") if pa.types.is_boolean(kind) else texts.cast(kind)


def _numpy(mask: pa.BooleanArray) -> np.ndarray:
    found: np.ndarray = mask.to_numpy(zero_copy_only=False)
    return found
