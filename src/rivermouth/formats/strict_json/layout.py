"""How the members of a record stand in its bytes: what all records of a producer have in common.

A producer writes its records by one program: the same names in the same order, with the same space
between them. Only the values differ. A layout says which bytes stay, and where values stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pyarrow as pa

from rivermouth.formats.strict_json.document import read
from rivermouth.formats.strict_json.faults import Bad

_TOKENS = re.compile(rb'"[^"]*"|[{}\[\]:,]|[ \t\r\n]+|[^ \t\r\n{}\[\]:,"]+')
_LONGEST = 10_000
_MOST = 40
"""With more names the parser is as fast: each value has a price of its own."""
Path = tuple[str, ...]


@dataclass(frozen=True)
class Slot:
    """Where a value stands that is no object. ``kind``: the type of its column, None if it has
    none. ``quoted``: it is text, and stands between quotation marks, which belong to the runs.
    """

    path: Path
    kind: pa.DataType | None
    quoted: bool


@dataclass(frozen=True)
class Layout:
    """``runs``: the bytes before, between and after the values, one more than ``slots``.

    ``objects``: the paths of the objects. No path comes twice.
    """

    runs: tuple[bytes, ...]
    slots: tuple[Slot, ...]
    objects: frozenset[Path]

    @property
    def quotes(self) -> int:
        """How many quotation marks a record has."""
        return sum(each.count(b'"') for each in self.runs)


def layout_of(sample: bytes, row: pa.StructType) -> Layout | None:
    """That of a record. None: it is bad, it does not surely fit the columns, it is large, or it
    has arrays or escapes, which differ from record to record. ``row`` is of the types that the
    parser reads.
    """
    if len(sample) > _LONGEST or b"\\" in sample or b"[" in sample:
        return None
    try:
        read(sample, spelt=False)
        return _Walk(row).through(sample)
    except (Bad, _Unfit):
        return None


class _Unfit(Exception):
    """The record cannot be a sample."""


@dataclass
class _Walk:
    """A walk through the tokens of a record, which is JSON. Raises _Unfit."""

    row: pa.StructType
    path: list[str] = field(default_factory=list)
    run: bytes = b""
    runs: list[bytes] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)
    objects: set[Path] = field(default_factory=set)

    def through(self, sample: bytes) -> Layout:
        before = b""
        for token in _TOKENS.findall(sample):
            if token.isspace():
                self.run += token
            elif token in b"{}:,":
                self._mark(token)
                before = token
            elif before == b":":
                self._value(token)
                before = b""
            else:
                self._name(token)
        runs = (*self.runs, self.run)
        return Layout(runs, tuple(self.slots), frozenset(self.objects))

    def _mark(self, token: bytes) -> None:
        self.run += token
        if token == b"{":
            kind = self._kind()
            if kind is not None and not pa.types.is_struct(kind):
                raise _Unfit
            self.objects.add(tuple(self.path))
            self.path.append("")
        elif token == b"}":
            self.path.pop()

    def _name(self, token: bytes) -> None:
        self.run += token
        self.path[-1] = token[1:-1].decode()
        path = tuple(self.path)
        if path in self.seen or len(self.seen) == _MOST:
            raise _Unfit
        self.seen.add(path)

    def _value(self, token: bytes) -> None:
        kind, quoted = self._kind(), token.startswith(b'"')
        if quoted and kind is not None and not _in_text(kind):
            raise _Unfit
        mark = b'"' if quoted else b""
        self.runs.append(self.run + mark)
        self.run = mark
        self.slots.append(Slot(tuple(self.path), kind, quoted))

    def _kind(self) -> pa.DataType | None:
        """The type of the column at the path; None where there is none."""
        kind: pa.DataType | None = self.row
        for name in self.path:
            at = kind.get_field_index(name) if kind is not None and pa.types.is_struct(kind) else -1
            kind = kind.field(at).type if kind is not None and at >= 0 else None
        return kind


def _in_text(kind: pa.DataType) -> bool:
    """Whether text can be a value of the type."""
    return bool(pa.types.is_string(kind) or pa.types.is_decimal(kind))
