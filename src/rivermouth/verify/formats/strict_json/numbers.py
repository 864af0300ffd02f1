"""Numbers by their text, exactly: no digit is lost, and no exponent is too large."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa

from rivermouth.verify.formats.reader import Undecodable, shown
from rivermouth.verify.formats.scalars import rounded

_PARTS = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)([0-9]+))?")
_JSON = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ALONE = re.compile(r"-?[0-9]+")
_LONGEST = 12
"""An exponent of more digits is greater than the number of digits of any record."""
_MOST = 10**_LONGEST
_WIDEST = 19
"""The digits of the greatest BIGINT."""


def is_json_number(text: str) -> bool:
    """Whether a text is spelt as JSON spells numbers."""
    return _JSON.fullmatch(text) is not None


def is_decimal_text(text: str) -> bool:
    """Whether a text is one that a DECIMAL column takes."""
    return _DECIMAL.fullmatch(text) is not None


def exact(text: str) -> tuple[int, str, int]:
    """Sign (-1 or 1), digits and power of ten of a number; the digits neither begin nor end with 0.

    The digits of zero are empty. ``text`` is a JSON number or text of a DECIMAL.
    """
    match = _PARTS.fullmatch(text)
    if match is None:
        raise Undecodable(f"not a number: {shown(text)}")
    sign, whole, part, direction, power = match.groups("")
    digits = (whole + part).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return 1, "", 0
    power = power.lstrip("0")
    shift = _MOST if len(power) > _LONGEST else int(power or "0")
    moved = (-shift if direction == "-" else shift) + len(digits) - len(kept) - len(part)
    return (-1 if sign == "-" else 1), kept, moved


def whole(text: str, widest: int = _WIDEST) -> int:
    """The value of a number that is whole, of at most ``widest`` digits. Raises Undecodable."""
    sign, digits, power = exact(text)
    if power < 0 or len(digits) + power > widest:
        raise Undecodable(f"not a whole number of that size: {shown(text)}")
    return sign * int(digits + "0" * power or "0")


def decimal(text: str, kind: pa.DataType) -> Decimal:
    """A DECIMAL that loses no digit of the number. Raises Undecodable."""
    precision, scale = kind.precision, kind.scale
    sign, digits, power = exact(text)
    if power < -scale or (digits and len(digits) + power > precision - scale):
        raise Undecodable(f"not DECIMAL({precision},{scale}): {shown(text)}")
    told = tuple(map(int, digits + "0" * (power + scale))) if digits else (0,)
    return Decimal((sign < 0, told, -scale))


def floating(text: str, kind: pa.DataType) -> float:
    """The FLOAT or DOUBLE that is nearest to a JSON number. Raises Undecodable."""
    if _ALONE.fullmatch(text):
        # Digits alone are an integer for whoever wrote them, and more of them fit no DOUBLE.
        found = _held(int(text), kind) if len(text) < 400 else None
    else:
        found = float(text) if kind.bit_width == 64 else rounded(text)
    if found is None or found in (float("inf"), float("-inf")):
        raise Undecodable(f"not {kind}: {shown(text)}")
    return found


def from_int(number: int, kind: pa.DataType) -> float:
    """A FLOAT or DOUBLE of digits alone, which it must hold exactly. Raises Undecodable."""
    found = _held(number, kind)
    if found is None:
        raise Undecodable(f"not exactly {kind}: {str(number)[:60]}")
    return found


def _held(number: int, kind: pa.DataType) -> float | None:
    try:
        found = float(number) if kind.bit_width == 64 else rounded(number)
    except OverflowError:
        return None
    return found if found == number else None
