"""What stands in the bytes of a record, by its schema: read side by side, or one by one.

Both ways find the same. The second is for what only a few records still have: a pass over one
lane costs as much as one over a hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rivermouth.formats.shredded.found import (
    Choice,
    Found,
    Group,
    Many,
    Numbers,
    Spans,
    joined,
    taken,
)
from rivermouth.formats.shredded.lanes import Ints, Lanes

_FEW = 12
"""So few lanes are read one by one, if they have more than ``_ROUNDS`` values left."""
_ROUNDS = 24
_MOST_BITS = 70
"""Those of the ten bytes that a number has at most."""


class Bad(Exception):
    """A record that does not follow its grammar; the text says where."""


@dataclass
class Cursor:
    """One record that is read from ``at`` to ``end``."""

    code: memoryview
    at: int
    end: int

    def span(self, length: int, what: str) -> tuple[int, int]:
        start = self.at
        if not 0 <= length <= self.end - start:
            raise Bad(f"{what}: the record ends within it")
        self.at = start + length
        return start, length

    def zigzag(self, what: str) -> int:
        value = shift = 0
        while True:
            at, _ = self.span(1, what)
            code = self.code[at]
            value |= (code & 0x7F) << shift
            shift += 7
            if code < 0x80 or shift == _MOST_BITS:
                break
        if code >= 0x80 or value >> 64:
            raise Bad(f"{what}: the record ends within it")
        return (value >> 1) ^ -(value & 1)


class Grammar(Protocol):
    """How values of a type are written."""

    def shred(self, lanes: Lanes) -> Found | None:
        """The next value of each lane."""

    def one(self, cursor: Cursor) -> Any:
        """The next value; ``found`` makes the same of a list of them as ``shred``. Raises Bad."""

    def found(self, values: Sequence[Any]) -> Found | None:
        """What ``shred`` finds, of values as ``one`` gives them."""


@dataclass(frozen=True)
class Nothing:
    """No byte."""

    def shred(self, lanes: Lanes) -> None:
        return None

    def one(self, cursor: Cursor) -> None:
        return None

    def found(self, values: Sequence[Any]) -> None:
        return None


@dataclass(frozen=True)
class Number:
    """``int`` and ``long``, and the number of a symbol."""

    where: str
    bits: int

    def shred(self, lanes: Lanes) -> Numbers:
        values = lanes.zigzags(self.where)
        if self.bits < 64:
            bad = values != values.astype(np.int32)
            lanes.refuse(bad, self._beyond)
        return Numbers(values)

    def one(self, cursor: Cursor) -> int:
        value = cursor.zigzag(self.where)
        if self.bits < 64 and not -(2**31) <= value < 2**31:
            raise Bad(self._beyond)
        return value

    def found(self, values: Sequence[Any]) -> Numbers:
        return Numbers(np.array(values, np.int64))

    @property
    def _beyond(self) -> str:
        return f"{self.where}: an int has more than 32 bits"


@dataclass(frozen=True)
class Truth:
    """``boolean``: a byte."""

    where: str

    def shred(self, lanes: Lanes) -> Numbers:
        start, _ = lanes.span(1, self.where)
        return Numbers(lanes.data.codes[start].astype(np.int64))

    def one(self, cursor: Cursor) -> int:
        start, _ = cursor.span(1, self.where)
        return cursor.code[start]

    def found(self, values: Sequence[Any]) -> Numbers:
        return Numbers(np.array(values, np.int64))


@dataclass(frozen=True)
class Block:
    """Bytes: ``length`` of them, or as many as the number ahead says (None)."""

    where: str
    length: int | None = None

    def shred(self, lanes: Lanes) -> Spans:
        length = lanes.zigzags(self.where) if self.length is None else self.length
        return Spans(*lanes.span(length, self.where))

    def one(self, cursor: Cursor) -> tuple[int, int]:
        length = cursor.zigzag(self.where) if self.length is None else self.length
        return cursor.span(length, self.where)

    def found(self, values: Sequence[Any]) -> Spans:
        both = np.array(values, np.int64).reshape(-1, 2)
        return Spans(both[:, 0], both[:, 1])


@dataclass(frozen=True)
class Fields:
    """``record``: its fields, one after the other; those not ``kept`` are left out."""

    fields: tuple[Grammar, ...]
    kept: tuple[bool, ...]

    def shred(self, lanes: Lanes) -> Group:
        found = [each.shred(lanes) for each in self.fields]
        return Group(tuple(f if kept else None for f, kept in zip(found, self.kept, strict=True)))

    def one(self, cursor: Cursor) -> tuple[Any, ...]:
        return tuple([each.one(cursor) for each in self.fields])

    def found(self, values: Sequence[Any]) -> Group:
        columns = [*zip(*values, strict=True)] if values else [()] * len(self.fields)
        return Group(
            tuple(
                each.found(its) if kept else None
                for each, its, kept in zip(self.fields, columns, self.kept, strict=True)
            )
        )


@dataclass(frozen=True)
class Branches:
    """``union``: the number of a branch, and its value."""

    where: str
    branches: tuple[Grammar, ...]

    def shred(self, lanes: Lanes) -> Choice:
        branch = lanes.zigzags(self.where)
        bad = (branch < 0) | (branch >= len(self.branches))
        if bad.any():
            lanes.refuse(bad, self._beyond)
            branch = np.where(bad, self._empty, branch)
        of: list[Found | None] = []
        for number, each in enumerate(self.branches):
            its = branch == number
            if its.all():
                of.append(each.shred(lanes))
            else:
                some = lanes.only(its)
                of.append(each.shred(some))
                lanes.back(its, some)
        return Choice(branch, tuple(of))

    def one(self, cursor: Cursor) -> tuple[int, Any]:
        branch = cursor.zigzag(self.where)
        if not 0 <= branch < len(self.branches):
            raise Bad(self._beyond)
        return branch, self.branches[branch].one(cursor)

    def found(self, values: Sequence[Any]) -> Choice:
        branch = np.array([each for each, _ in values], np.int64)
        of = [
            each.found([value for its, value in values if its == number])
            for number, each in enumerate(self.branches)
        ]
        return Choice(branch, tuple(of))

    @property
    def _beyond(self) -> str:
        return f"{self.where}: a number of none of the {len(self.branches)} branches"

    @property
    def _empty(self) -> int:
        """The branch of a bad record: it reads least."""
        kinds = [isinstance(each, Nothing) for each in self.branches]
        return kinds.index(True) if True in kinds else 0


@dataclass(frozen=True)
class Items:
    """``array`` and ``map``: blocks of values, each with their number ahead; the last has none.

    Each value has a byte or more, so a record has no more of them than bytes.
    """

    where: str
    item: Grammar

    def shred(self, lanes: Lanes) -> Many:
        parts: list[Found | None] = []
        places: list[Ints] = []
        active = np.arange(len(lanes))
        while len(active):
            some = lanes.only(active)
            counts = self._count(some)
            lanes.back(active, some)
            active, counts = active[counts > 0], counts[counts > 0]
            self._block(lanes, active, counts, parts, places)
        return self._in_order(parts, places, len(lanes))

    def _count(self, lanes: Lanes) -> Ints:
        """How many values the next block of each lane has."""
        counts = lanes.zigzags(self.where)
        sized = np.flatnonzero(counts < 0)  # then the number of their bytes follows
        if len(sized):
            some = lanes.only(sized)
            some.zigzags(self.where)
            lanes.back(sized, some)
            counts[sized] = -counts[sized]
        bad = (counts < 0) | (counts > lanes.end - lanes.at)
        lanes.refuse(bad, self._beyond)
        counts[bad] = 0
        return counts

    def _block(
        self,
        lanes: Lanes,
        todo: Ints,
        left: Ints,
        parts: list[Found | None],
        places: list[Ints],
    ) -> None:
        rounds = 0
        while len(todo):
            if rounds >= _ROUNDS and len(todo) <= _FEW:
                self._one_by_one(lanes, todo, left, parts, places)
                return
            some = lanes.only(todo)
            parts.append(self.item.shred(some))
            places.append(todo)
            lanes.back(todo, some)
            left = left - 1
            short = (left > 0) & (some.at >= some.end)
            if short.any():
                some.refuse(short, f"{self.where}: the record ends within it")
                left[short] = 0
            todo, left, rounds = todo[left > 0], left[left > 0], rounds + 1

    def _one_by_one(
        self,
        lanes: Lanes,
        todo: Ints,
        left: Ints,
        parts: list[Found | None],
        places: list[Ints],
    ) -> None:
        code = lanes.data.view
        for lane, count in zip(todo.tolist(), left.tolist(), strict=True):
            cursor = Cursor(code, int(lanes.at[lane]), int(lanes.end[lane]))
            values: list[Any] = []
            try:
                values += (self.item.one(cursor) for _ in range(count))
                lanes.at[lane] = cursor.at
            except Bad as bad:
                lanes.refuse(np.arange(len(lanes)) == lane, str(bad))
            parts.append(self.item.found(values))
            places.append(np.full(len(values), lane))

    def _in_order(self, parts: list[Found | None], places: list[Ints], lanes: int) -> Many:
        if not parts:
            parts, places = [self.item.found([])], [np.zeros(0, np.int64)]
        of = np.concatenate(places)
        counts = np.bincount(of, minlength=lanes)
        return Many(counts, taken(joined(parts), np.argsort(of, kind="stable")))

    def one(self, cursor: Cursor) -> list[Any]:
        found: list[Any] = []
        while count := cursor.zigzag(self.where):
            if count < 0:
                count = -count
                cursor.zigzag(self.where)
            if count > cursor.end - cursor.at:
                raise Bad(self._beyond)
            found += (self.item.one(cursor) for _ in range(count))
        return found

    def found(self, values: Sequence[Any]) -> Many:
        counts = np.array([len(each) for each in values], np.int64)
        return Many(counts, self.item.found([item for each in values for item in each]))

    @property
    def _beyond(self) -> str:
        return f"{self.where}: more values than the record has bytes"
