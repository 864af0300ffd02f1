"""The statistics of a data file, as Delta's own writer gives them in the ``add`` action.

What is counted and compared is decided by the leaf columns of the table, see ``leaves_of``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.protocol.ways import Definition

PREFIX = 32
"""Of longer texts, Delta keeps so many characters."""

_ASCII_MAX, _UTF8_MAX = "\x7f", "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_COUNTED_ONLY = ("boolean", "binary", "array", "map")
_DAY_US = 86_400_000_000
_EARLIEST, _LATEST = -62135596800_000_000, 253402300799_999_999  # the years 1 to 9999


@dataclass(frozen=True)
class Leaf:
    """A column that is no struct, with the names that lead to it; ``kind`` is Delta's type."""

    path: tuple[str, ...]
    kind: str

    @property
    def compared(self) -> bool:
        """Whether Delta notes its smallest and greatest value."""
        return self.kind not in _COUNTED_ONLY


def leaves_of(table: Definition) -> tuple[Leaf, ...]:
    """The leaves of a table of which its files have statistics.

    Partition columns are not in them. Those that the table is clustered by count wherever they are.
    """
    every = [each for each in _leaves(table.schema, ()) if each.path[0] not in table.partitions]
    noted = {*(every if table.indexed < 0 else every[: table.indexed])}
    clusters = {tuple(each) for each in table.clusters}
    return tuple(each for each in every if each in noted or each.path in clusters)


def partitions_of(table: Definition) -> tuple[Leaf, ...]:
    """The partition columns of a table, in their order."""
    leaves = {each.path: each for each in _leaves(table.schema, ())}
    return tuple(leaves[name,] for name in table.partitions)


def _leaves(struct: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Leaf]:
    for each in struct["fields"]:
        path, kind = (*above, str(each["name"])), each["type"]
        if isinstance(kind, str):
            yield Leaf(path, kind)
        elif kind["type"] == "struct":
            yield from _leaves(kind, path)
        else:
            yield Leaf(path, str(kind["type"]))


@dataclass
class _Seen:
    """What was seen of one leaf: plain values, and how many were null."""

    nulls: int = 0
    least: Any = None
    greatest: Any = None
    nan: bool = False
    unknown: bool = False
    """Whether a value could not be compared: then there is no least, and no greatest."""

    def take(self, least: Any, greatest: Any) -> None:
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)


@dataclass
class Statistics:
    """Takes the rows of one file; ``json`` tells of all that it took."""

    leaves: Sequence[Leaf]
    records: int = 0
    _seen: dict[Leaf, _Seen] = field(default_factory=dict)

    def add(self, rows: pa.RecordBatch) -> None:
        """Take more rows. A leaf that they lack is null in all of them."""
        self.records += rows.num_rows
        for leaf in self.leaves:
            seen, values = self._seen.setdefault(leaf, _Seen()), _values(rows, leaf.path)
            if values is None:
                seen.nulls += rows.num_rows
                continue
            seen.nulls += values.null_count
            if leaf.compared:
                _compare(seen, values)

    def json(self, *, tight: bool) -> str:
        """Delta's ``stats``. ``tight``: the table may have deletion vectors."""
        found: dict[str, Any] = {"numRecords": self.records}
        compared = [each for each in self.leaves if each.compared]
        if compared:
            least = {each: _least(each.kind, self._of(each)) for each in compared}
            greatest = {each: _greatest(each.kind, self._of(each)) for each in compared}
            found["minValues"] = _nested(least)
            found["maxValues"] = _nested(greatest)
        if self.leaves:
            nulls = {each: str(self._of(each).nulls) for each in self.leaves}
            found["nullCount"] = _nested(nulls)
        if tight:
            found["tightBounds"] = True
        return _text(found)

    def _of(self, leaf: Leaf) -> _Seen:
        return self._seen.get(leaf, _Seen())


def _values(rows: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array | None:
    """The values of a leaf, null where a struct above it is null."""
    place = rows.schema.get_field_index(path[0])
    if place < 0:
        return None
    values = rows.column(place)
    for name in path[1:]:
        at = values.type.get_field_index(name)
        if at < 0:
            return None
        values = pc.struct_field(values, [at])
    return values


def _compare(seen: _Seen, values: pa.Array) -> None:
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        seen.nan = seen.nan or bool(pc.any(nan).as_py())
        values = pc.filter(values, pc.invert(nan))
    elif pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    found = pc.min_max(values)
    try:
        seen.take(found["min"].as_py(), found["max"].as_py())
    except UnicodeDecodeError:  # Spark's STRING may hold any bytes
        seen.unknown = True


def _least(kind: str, seen: _Seen) -> str | None:
    """The smallest value as JSON; for Delta NaN is the greatest."""
    if seen.unknown:
        return None
    if seen.least is None:
        return '"NaN"' if seen.nan else None
    return _written(kind, seen.least, lambda text: text[:PREFIX])


def _greatest(kind: str, seen: _Seen) -> str | None:
    if seen.nan:
        return '"NaN"'
    if seen.unknown or seen.greatest is None:
        return None
    return _written(kind, seen.greatest, cut_above)


def _written(kind: str, value: Any, cut: Callable[[str], str | None]) -> str | None:
    if kind in ("float", "double"):
        if math.isinf(value):
            return '"Infinity"' if value > 0 else '"-Infinity"'
        return str(np.float32(value)) if kind == "float" else repr(value)
    if kind in ("timestamp", "timestamp_ntz"):
        zone = "Z" if kind == "timestamp" else ""
        return _time(value, zone) if _EARLIEST <= value <= _LATEST else None
    if isinstance(value, Decimal):
        return format(value, "f")
    if kind == "date":
        inside = _EARLIEST <= value * _DAY_US <= _LATEST
        return json.dumps((_EPOCH + timedelta(days=value)).date().isoformat()) if inside else None
    if isinstance(value, str):
        short = cut(value)
        return None if short is None else json.dumps(short, ensure_ascii=False)
    return str(value)


def _time(microseconds: int, zone: str) -> str:
    """Cut to milliseconds, towards the past: a reader of Delta adds one to the greatest."""
    at = _EPOCH + timedelta(milliseconds=microseconds // 1000)
    return json.dumps(at.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone)


def cut_above(text: str, prefix: int = PREFIX) -> str | None:
    """A short text that is not below ``text``, in the order of UTF-8; None: there is none.

    Lengths are counted in UTF-16, as Delta does. The text is cut before a character, and one
    follows that is greater than it.
    """
    if _utf16(text) <= prefix:
        return text
    length = 0
    for at, character in enumerate(text):
        if length > 2 * prefix:
            return None
        if length >= prefix and character != _UTF8_MAX:
            return text[:at] + (_ASCII_MAX if character < _ASCII_MAX else _UTF8_MAX)
        length += _utf16(character)
    return text if length <= 2 * prefix else None


def _utf16(text: str) -> int:
    return len(text) + sum(each > "\uffff" for each in text)


def _nested(values: Mapping[Leaf, str | None]) -> dict[str, Any]:
    """JSON texts by leaf as objects in each other; of a leaf without a value, those above stay."""
    tree: dict[str, Any] = {}
    for leaf, value in values.items():
        here = tree
        for name in leaf.path[:-1]:
            here = here.setdefault(name, {})
        if value is not None:
            here[leaf.path[-1]] = value
    return tree


def _text(found: Any) -> str:
    """JSON of objects whose leaves are JSON already, but for numbers of Python and true."""
    if isinstance(found, dict):
        pairs = (f"{json.dumps(k, ensure_ascii=False)}:{_text(v)}" for k, v in found.items())
        return "{" + ",".join(pairs) + "}"
    return found if isinstance(found, str) else json.dumps(found)
