"""Objects and arrays as they are spelt in a record, for columns of text that take anything.

The documents are sound: ``document.pairs_of`` has read them before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.strict_json.document import SPELT, Scan, Spelt

Fold = Callable[[str], str]
_SPACES = re.compile(r"[ \t\r\n]*")


def speller(kind: pa.DataType, fold: Fold) -> Scan:
    """What scans the value of a column of that type; names are compared as ``fold`` gives them.

    Where a column of text has an object or an array, it gives their text; else what ``SPELT`` does.
    """
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text
    if pa.types.is_struct(kind):
        fields = {fold(each.name): speller(each.type, fold) for each in kind}
        return _objects(lambda name: fields.get(fold(name), SPELT))
    if pa.types.is_map(kind):
        item = speller(kind.item_type, fold)
        return _objects(lambda _: item)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _arrays(speller(kind.value_type, fold))
    return SPELT


def _text(text: str, at: int) -> tuple[Any, int]:
    found, end = SPELT(text, at)
    return (Spelt(text[at:end]), end) if text[at] in "{[" else (found, end)


def _objects(of: Callable[[str], Scan]) -> Scan:
    def scan(text: str, at: int) -> tuple[Any, int]:
        if text[at] != "{":
            return SPELT(text, at)
        pairs: list[tuple[str, Any]] = []
        at = _next(text, at + 1)
        while text[at] != "}":
            name, at = SPELT(text, at)
            value, at = of(name)(text, _next(text, _next(text, at) + 1))
            pairs.append((name, value))
            at = _behind(text, at)
        return tuple(pairs), at + 1

    return scan


def _arrays(of: Scan) -> Scan:
    def scan(text: str, at: int) -> tuple[Any, int]:
        if text[at] != "[":
            return SPELT(text, at)
        values: list[Any] = []
        at = _next(text, at + 1)
        while text[at] != "]":
            value, at = of(text, at)
            values.append(value)
            at = _behind(text, at)
        return values, at + 1

    return scan


def _next(text: str, at: int) -> int:
    """The place of the next character that is no space."""
    found = _SPACES.match(text, at)
    return found.end() if found else at


def _behind(text: str, at: int) -> int:
    """The place of what follows on a value and its comma, if it has one."""
    at = _next(text, at)
    return _next(text, at + 1) if text[at] == "," else at
