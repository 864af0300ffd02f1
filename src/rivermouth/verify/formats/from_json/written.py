"""Text that Spark's parser writes for a column of text, where the record holds no text.

A number with a point or an exponent is written as Java writes it (``1.50`` becomes ``1.5``, and
``1e400`` becomes ``"Infinity"``), an object or array without spaces. How many digits Java writes
depends on its version, so texts are compared by the JSON values that they hold.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rivermouth.verify.formats.from_json.text import Number, Pairs, parse_text

_INFINITE = {float("inf"): '"Infinity"', float("-inf"): '"-Infinity"'}
_CONTROL = re.compile(r"\\u00[01][0-9a-f]")
_ASTRAL = re.compile(r"[\ud800-\udfff\U00010000-\U0010ffff]")


class Written(str):
    """What the newest Java writes for ``tree``; equal to each text that holds the same values."""

    tree: Any

    @classmethod
    def of(cls, tree: Any) -> Written:
        """The text for a ``Number``, ``Pairs`` or list. Raises RecursionError."""
        found = cls(_written(tree))
        found.tree = tree
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return NotImplemented
        if str.__eq__(self, other):
            return True
        try:
            return _same(self.tree, parse_text(str(other)))
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def java_double(value: float) -> str:
    """A DOUBLE as Java 19 and later write it."""
    if value != value:
        return '"NaN"'
    if value in _INFINITE:
        return _INFINITE[value]
    short = repr(value)
    two = f"{value:.1e}"
    if len(re.sub(r"e.*|[-.]|\.0$", "", short)) < 2 and float(two) == value:
        short = two  # Java looks for at least two digits
    mantissa, _, exponent = f"{short}e0".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, part = mantissa.lstrip("-").partition(".")
    power = int(exponent.split("e")[0])
    digits = (whole + part).lstrip("0")
    if not digits.strip("0"):
        return f"{sign}0.0"
    point = len(whole) + power - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    if -2 <= point <= 7:
        padded = digits.ljust(point, "0") if point > 0 else "0" * (1 - point) + digits
        at = max(point, 1)
        return f"{sign}{padded[:at]}.{padded[at:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _written(tree: Any) -> str:
    if isinstance(tree, Number):
        return java_double(float(tree.replace("INF", "Infinity")))
    if isinstance(tree, Pairs):
        return "{" + ",".join(f"{_quoted(name)}:{_written(held)}" for name, held in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_written, tree)) + "]"
    return _quoted(tree) if isinstance(tree, str) else json.dumps(tree)


def _quoted(text: str) -> str:
    plain = json.dumps(text, ensure_ascii=False)
    plain = _CONTROL.sub(lambda found: found[0][:2] + found[0][2:].upper(), plain)
    return _ASTRAL.sub(_pair, plain)


def _pair(found: re.Match[str]) -> str:
    """A character outside of the first plane, as the escapes of its two halves."""
    units = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _same(tree: Any, other: Any) -> bool:
    """Whether ``other``, read from a table, is what the parser writes for ``tree``."""
    if isinstance(tree, Number):
        value = float(tree.replace("INF", "Infinity"))
        if isinstance(other, Number):
            return float(other) == value
        return isinstance(other, str) and json.dumps(other) == java_double(value)
    if type(tree) is not type(other):
        return False
    if isinstance(tree, list):
        return len(tree) == len(other) and all(map(_same_item, tree, other))
    return bool(tree == other)


def _same_item(tree: Any, other: Any) -> bool:
    if isinstance(tree, tuple):  # the name and value of an object
        return bool(tree[0] == other[0]) and _same(tree[1], other[1])
    return _same(tree, other)
