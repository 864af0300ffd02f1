"""What a pipeline may allow beyond the strict rules, as the entry of each batch names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rivermouth.verify.formats.reader import UnknownDecoder

UNITS: Mapping[str, tuple[int, int]] = {
    "s": (1_000_000, 1),
    "ms": (1_000, 1),
    "us": (1, 1),
    "ns": (1, 1_000),
}
"""By what a whole number is multiplied, and then divided, to count microseconds."""
_LENIENT = ("number_in_text", "anything_as_text", "repeated_names", "any_case")


@dataclass(frozen=True)
class Settings:
    """``unit`` says what a whole number in a TIMESTAMP column counts; None: it is bad.

    ``cut``: what is less than a microsecond is cut, towards the past. The others are the names
    of ``lenient``.
    """

    unit: str | None = None
    cut: bool = False
    number_in_text: bool = False
    anything_as_text: bool = False
    repeated_names: bool = False
    any_case: bool = False


def settings_of(told: Mapping[str, Any]) -> Settings:
    """From ``decoder`` of an entry. Raises UnknownDecoder for what this version does not know."""
    times = told.get("timestamps", {})
    lenient = told.get("lenient", [])
    if not isinstance(times, Mapping) or not isinstance(lenient, list):
        raise UnknownDecoder("settings of another form")
    unit, fraction = times.get("unit"), times.get("fraction")
    odd = sorted({*told} - {"timestamps", "lenient"})
    odd += [f"timestamps.{each}" for each in sorted({*times} - {"unit", "fraction"})]
    odd += [str(each) for each in lenient if each not in _LENIENT]
    odd += [f"unit {unit}"] if unit is not None and str(unit) not in UNITS else []
    odd += [f"fraction {fraction}"] if fraction not in (None, "cut") else []
    if odd:
        raise UnknownDecoder(f"the setting {odd[0]}")
    return Settings(unit, fraction == "cut", *(each in lenient for each in _LENIENT))
