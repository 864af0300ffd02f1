"""The exact values of numbers that are spelt."""

from __future__ import annotations

import ctypes
import math
import re
from decimal import Decimal

import numpy as np

from rivermouth.formats.strict_json.faults import Bad, shown

JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)([0-9]+))?")
_FAR = 10**12
"""Stands for every exponent that is larger: no text has so many digits."""
_FLOAT_MOST = float(np.finfo(np.float32).max)
_FLOAT_EDGE = 2.0**128 - 2.0**103
"""Half-way between the largest FLOAT and what would be the next one."""


def parts(text: str) -> tuple[str, str, int] | None:
    """Sign, digits without zeros at either end, and the power of ten of the last digit.

    None for what is not the text of a DECIMAL. Zero has no digits, and the power 0.
    """
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, before, after, alone, exponent_sign, exponent = found.groups(default="")
    fraction = after or alone
    digits = (before + fraction).lstrip("0")
    kept = digits.rstrip("0")
    if not kept:
        return sign, "", 0
    exponent = exponent.lstrip("0")
    power = _FAR if len(exponent) > 12 else int(exponent or 0)
    power = -power if exponent_sign == "-" else power
    return sign, kept, power - len(fraction) + len(digits) - len(kept)


def whole(text: str, most_digits: int = 40) -> int | None:
    """The value, if it is whole and has no more than so many digits."""
    found = parts(text)
    if found is None:
        return None
    sign, digits, power = found
    if power < 0 or len(digits) + power > most_digits:
        return None
    value = int(digits + "0" * power or "0")
    return -value if sign == "-" else value


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """The exact value. Raises Bad if it has more digits than the type, or is no number."""
    found = parts(text)
    if found is None:
        raise Bad(f"{shown(str(text))} is not a number")
    sign, digits, power = found
    if -power > scale:
        raise Bad(f"{_cut(text)} has more than {scale} digits after the point")
    if digits and len(digits) + power > precision - scale:
        raise Bad(f"{_cut(text)} has more than {precision - scale} digits before the point")
    return Decimal(f"{sign}{digits or '0'}e{power}")


def double(text: str) -> float:
    """The nearest DOUBLE. Raises Bad where it is infinite, or loses a digit of a whole number."""
    value = float(text)
    return _kept(text, value, "DOUBLE")


def single(text: str) -> float:
    """The nearest FLOAT, by the same rules.

    Not all nearest FLOATs of the nearest DOUBLE are right: where that DOUBLE is half-way between
    two of them, the digits decide.
    """
    wide = float(text)
    value = ctypes.c_float(wide).value
    if math.isinf(value) and abs(wide) == _FLOAT_EDGE:
        if Decimal(text).copy_abs() < Decimal(_FLOAT_EDGE):
            value = math.copysign(_FLOAT_MOST, wide)
    elif math.isfinite(value) and value != wide:
        other = _next_single(value, wide)
        if math.isfinite(other) and (value + other) / 2 == wide:
            exact = Decimal(text)
            if exact != Decimal(wide):
                value = max(value, other) if exact > Decimal(wide) else min(value, other)
    return _kept(text, value, "FLOAT")


def _next_single(value: float, towards: float) -> float:
    """The FLOAT beside the FLOAT ``value``; infinite beyond the last one."""
    direction = np.float32(math.copysign(math.inf, towards - value))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(value), direction))


def _kept(text: str, value: float, name: str) -> float:
    if math.isinf(value):
        raise Bad(f"{_cut(text)} is out of the range of {name}")
    if not ("." in text or "e" in text or "E" in text) and int(text) != int(value):
        raise Bad(f"{name} cannot hold all digits of {_cut(text)}")
    return value


def _cut(text: str) -> str:
    return shown(text).removeprefix('the text "').removeprefix("the number ").removesuffix('"')
