"""Single values that are written as text, one cast for each Arrow type.

Written from the documented behaviour of Spark's ``try_cast``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Undecodable
from rivermouth.verify.formats.scalars import TRIMMED, days, decimal, micros, single

_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_SPACES = "".join(map(chr, range(0x21)))
_DIGITS = 1_000
"""Whole numbers of more digits fit no column, whatever their leading zeros."""
_WHOLE = re.compile(r"[+-]?[0-9]+")


def from_text(kind: pa.DataType) -> Callable[[str], Any]:
    """What casts text to the canonical value (see ``Reader``) of a type.

    It raises Undecodable for a text that does not fit. Raises Undecodable for an unknown type.
    """
    cast = _cast(kind)

    def read(text: str) -> Any:
        try:
            return cast(text)
        except ValueError as fault:
            raise Undecodable(f"not {kind}: {text!r}") from fault

    return read


def fits(number: int, kind: pa.DataType) -> bool:
    """Whether a column of that type, one of whole numbers, can hold the number."""
    limit = 1 << (kind.bit_width - 1)
    return bool(-limit <= number < limit)


def _integer(text: str, kind: pa.DataType) -> int:
    whole = text.strip(TRIMMED)
    if not _WHOLE.fullmatch(whole) or len(whole) > _DIGITS or not fits(int(whole), kind):
        raise ValueError("no whole number of that size")
    return int(whole)


def _boolean(text: str) -> bool:
    found = _BOOLEANS.get(text.strip(TRIMMED).lower())
    if found is None:
        raise ValueError("neither true nor false")
    return found


def _cast(kind: pa.DataType) -> Callable[[str], Any]:
    """Casts text to a type; what it returns raises ValueError."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str
    if pa.types.is_integer(kind):
        return lambda text: _integer(text, kind)
    if pa.types.is_floating(kind):
        return float if kind.bit_width == 64 else lambda text: single(float(text))
    if pa.types.is_boolean(kind):
        return _boolean
    if pa.types.is_decimal(kind):
        return lambda text: decimal(text.strip(_SPACES), kind.precision, kind.scale)
    if pa.types.is_date(kind):
        return days
    if pa.types.is_timestamp(kind):
        return lambda text: micros(text, local=kind.tz is None)
    raise Undecodable(f"text for a column of type {kind}")
