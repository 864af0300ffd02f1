"""Values of records that were sent: a mark of each, and which of them JSON may change.

What Spark writes as JSON and reads again is not always what it was: NaN, times beyond the years 1
to 9999, and texts that the parser of the record wrote. A difference there proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import NOT_VERIFIABLE

UNREAD = 0
"""The mark of a record whose values are not known."""
UNREADABLE = 1
"""The mark of a record that does not give the columns."""
_SECONDS = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999, in seconds since 1970."""
_DAY = 86_400
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def mark(values: tuple[Any, ...]) -> int:
    """A number of 64 bits for the values of a record; other values have another, nearly surely.

    ``UNREAD`` where one of them cannot be told.
    """
    if any(value is NOT_VERIFIABLE for value in values):
        return UNREAD
    found = hash(repr(_plain(values)))
    return found if found not in (UNREAD, UNREADABLE) else 2


def may_change(values: Sequence[Any], kinds: Sequence[pa.DataType]) -> bool:
    """Whether the values of a record may be others after a way through JSON."""
    return any(_may_change(value, kind) for value, kind in zip(values, kinds, strict=True))


def _plain(value: Any) -> Any:
    """The value without the sign of a zero: by it equal values would have other texts."""
    if isinstance(value, float):
        return value or 0.0
    if isinstance(value, Decimal):
        return value or value.copy_abs()
    if isinstance(value, dict):
        return {name: _plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _may_change(value: Any, kind: pa.DataType) -> bool:
    if value is None:
        return False
    if isinstance(value, float):
        return not math.isfinite(value)
    if pa.types.is_timestamp(kind):
        first, until = (each * _UNITS[kind.unit] for each in _SECONDS)
        return not first <= value < until
    if pa.types.is_date(kind):
        first, until = (each // _DAY for each in _SECONDS)
        return not first <= value < until
    if pa.types.is_struct(kind):
        return any(_may_change(value.get(each.name), each.type) for each in kind)
    if pa.types.is_map(kind):
        parts = ((name, kind.key_type, held) for name, held in value)
        return any(_may_change(n, key) or _may_change(v, kind.item_type) for n, key, v in parts)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return any(_may_change(each, kind.value_type) for each in value)
    # A reader may give a text that is equal to other texts, too: a class of its own.
    equal_to_others = isinstance(value, str) and type(value) is not str
    return value is NOT_VERIFIABLE or equal_to_others
