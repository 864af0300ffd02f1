"""Where the fields of messages stand in the bytes, by the encoding of Protobuf.

A message is tags and values, in any order. So the first tag of each message is read, then the
second of each, and what has the same tag at once. A message may come in several parts, which are
as if they stood together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.found import ranges
from rivermouth.formats.shredded.lanes import Faults, Ints, Lanes

VARINT, FIXED_64, BLOCK, GROUP, END_OF_GROUP, FIXED_32 = range(6)
_DEPTH = 100
"""The most messages and groups in each other."""
_SHORT = 5
"""The most bytes of a tag, and of a length."""
_FEW = 12
"""So few messages are read one by one, if they still have values after ``_TURNS`` turns."""
_TURNS = 40


@dataclass(frozen=True)
class Parts:
    """Parts of messages: ``of`` is the number of the message, out of ``count``.

    The lanes end where the parts end. Parts of one message stand in their order.
    """

    lanes: Lanes
    of: Ints
    count: int


@dataclass(frozen=True)
class Values:
    """Values of one field: ``at`` is where they begin, behind a length. ``given`` is the number
    itself of a ``VARINT``, else how many bytes it has. ``of`` is the number of the message.
    Those of one message are in their order.
    """

    at: Ints
    given: Ints
    of: Ints

    def only(self, these: np.ndarray) -> Values:
        """Those at the indices."""
        return Values(self.at[these], self.given[these], self.of[these])


NONE = Values(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass
class _Found:
    """What was found so far, by field number and wire type. ``groups``: the most in each other."""

    wanted: Collection[int]
    groups: int = _DEPTH
    values: dict[tuple[int, int], list[tuple[Ints, Ints, Ints]]] = field(default_factory=dict)

    def add(self, number: int, kind: int, at: Ints, given: Ints, of: Ints) -> None:
        if number in self.wanted:
            self.values.setdefault((number, kind), []).append((at, given, of))


def in_order(at: Ints, given: Ints, of: Ints) -> Values:
    """The values of each message in their order."""
    if (of[1:] > of[:-1]).all():  # as nearly always
        return Values(at, given, of)
    order = np.lexsort((at, of))
    return Values(at[order], given[order], of[order])


_DONE = np.uint64(2**64 - 1)


def scanned(
    parts: Parts, wanted: Collection[int], where: str, depth: int = 0
) -> Mapping[tuple[int, int], Values]:
    """The values of the wanted fields, by field number and wire type.

    A record that does not follow the encoding is refused. The messages stand in ``depth`` others.

    Writers write fields in the order of their numbers. So those lanes go on whose next tag is the
    least: a field is then read of all lanes that have it at once.
    """
    found = _Found(wanted, _DEPTH - depth)
    lanes, of = parts.lanes, parts.of
    tags = _next_tags(lanes, where)
    turns = 0
    while True:
        least = tags.min(initial=_DONE)
        if least == _DONE:
            break
        its = np.flatnonzero(tags == least)
        some = lanes if len(its) == len(lanes) else lanes.only(its)
        _value(some, of[its], int(least), found, where)
        tags[its] = _next_tags(some, where)
        if some is not lanes:
            lanes.back(its, some)
        turns += 1
        if turns % _TURNS == 0:
            left = np.flatnonzero(tags != _DONE)
            if len(left) <= _FEW:
                for lane in left.tolist():
                    one = lanes.only(np.array([lane]))
                    _one_by_one(one, int(tags[lane]), of[lane : lane + 1], found, where)
                break
    return {
        key: in_order(
            *(each[0] if len(each) == 1 else map(np.concatenate, zip(*each, strict=True)))
        )
        for key, each in found.values.items()
    }


def _next_tags(lanes: Lanes, where: str) -> NDArray[np.uint64]:
    """The next tag of each lane; ``_DONE`` at its end."""
    there = lanes.at < lanes.end
    if there.all():
        return lanes.varints(where, most=_SHORT)
    tags = np.full(len(lanes), _DONE)
    left = np.flatnonzero(there)
    some = lanes.only(left)
    tags[left] = some.varints(where, most=_SHORT)
    lanes.back(left, some)
    return tags


def _value(lanes: Lanes, of: Ints, tag: int, found: _Found, where: str) -> None:
    number, kind = tag >> 3, tag & 7
    every = np.ones(len(lanes), np.bool_)
    if not 0 < number < 1 << 29:
        lanes.refuse(every, f"{where}: a tag without a field number")
    elif kind == VARINT:
        at = lanes.at
        found.add(number, kind, at, lanes.varints(where, cut=True).view(np.int64), of)
    elif kind in (FIXED_64, FIXED_32):
        found.add(number, kind, *lanes.span(8 if kind == FIXED_64 else 4, where), of)
    elif kind == BLOCK:
        lengths = lanes.varints(where, most=_SHORT).view(np.int64)
        found.add(number, kind, *lanes.span(lengths, where), of)
    elif kind == GROUP:
        for lane in range(len(lanes)):  # they are of an older time
            one = lanes.only(np.array([lane]))
            _pass_group(one, number, found.groups, where)
            begins = lanes.at[lane : lane + 1]
            lanes.back(np.array([lane]), one)
            found.add(number, kind, begins, one.at - begins, of[lane : lane + 1])
    else:
        lanes.refuse(every, f"{where}: a tag with the wire type {kind}")


def _one_by_one(one: Lanes, tag: int, of: Ints, found: _Found, where: str) -> None:
    """The rest of one lane, of which many values are left."""
    code, at, end, begins = one.data.view, int(one.at[0]), int(one.end[0]), tag
    values: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    while True:
        number, kind = tag >> 3, tag & 7
        start, given, at = _place(code, at, end, kind)
        if at < 0 or not 0 < number < 1 << 29:
            break
        both = values.setdefault((number, kind), ([], []))
        both[0].append(start)
        both[1].append(given)
        if at == end:
            for key, (starts, lengths) in values.items():
                whole = np.array(starts, np.int64), np.array(lengths, np.int64)
                found.add(*key, *whole, np.repeat(of, len(starts)))
            return
        tag, at = _varint(code, at, end, _SHORT)
        if at < 0:
            break
    # A group, or a fault: the other way says which, from the first value on.
    tags = np.array([begins])
    while tags[0] != _DONE:
        _value(one, of, int(tags[0]), found, where)
        tags = _next_tags(one, where)


def _place(code: memoryview, at: int, end: int, kind: int) -> tuple[int, int, int]:
    """Where a value begins, what is given of it, and where it ends; -1 if it does not."""
    if kind == VARINT:
        given, behind = _varint(code, at, end)
        return at, given - ((given >> 63) << 64), behind
    if kind == BLOCK:
        given, at = _varint(code, at, end, _SHORT)
    else:
        given = {FIXED_64: 8, FIXED_32: 4}.get(kind, end)
    return at, given, at + given if at >= 0 and at + given <= end else -1


def _varint(code: memoryview, at: int, end: int, most: int = 10) -> tuple[int, int]:
    """The number, and where it ends; -1 if it does not, or has more than ``most`` bytes."""
    value = shift = 0
    while at < end and shift < 7 * most:
        byte = code[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & (2**64 - 1), at
    return 0, -1


def _pass_group(one: Lanes, number: int, most: int, where: str) -> None:
    """Go behind the end of a group, in a single lane. Parsers take any number of a field in it."""
    faults, one.faults = one.faults, Faults()  # they are told as one
    inside, nothing = [number], _Found(())
    of = np.zeros(1, np.int64)
    while inside and len(inside) <= most and one.at[0] < one.end[0] and not one.faults.why:
        tag = int(one.varints("", most=_SHORT)[0])
        if tag >> 32:
            break
        if tag & 7 == END_OF_GROUP:
            if inside[-1] != tag >> 3:
                break
            inside.pop()
        elif tag & 7 == GROUP:
            inside.append(tag >> 3)
        else:
            _value(one, of, tag & 7 | 8, nothing, "")
    bad, one.faults = bool(inside or one.faults.why), faults
    one.refuse(np.array([bad]), f"{where}: a group without its end")


def unpacked(plain: Values, packed: Values, wire: int, site: Site, name: str) -> Values:
    """The values of a field, and those of its packed ones, one by one, in their order."""
    if wire == VARINT:
        at, given, of = _numbers_in(packed, site, name)
    else:
        size = 8 if wire == FIXED_64 else 4
        bad = packed.given % size != 0
        site.of(packed.of).named(name).refuse(bad, "packed values that are not whole")
        counts = np.where(bad, 0, packed.given // size)
        at = packed.at.repeat(counts) + size * ranges(np.zeros_like(counts), counts)
        given, of = np.full(len(at), size), packed.of.repeat(counts)
    both = ((plain.at, at), (plain.given, given), (plain.of, of))
    return in_order(*map(np.concatenate, both))


def _numbers_in(packed: Values, site: Site, name: str) -> tuple[Ints, Ints, Ints]:
    """Where each number stands, the number, and its message."""
    codes = site.data.codes[ranges(packed.at, packed.given)]
    last = codes < 0x80
    block = np.repeat(np.arange(len(packed.at)), packed.given)
    ends = np.flatnonzero(last)
    counts = np.bincount(block[ends], minlength=len(packed.at))
    behind = np.cumsum(packed.given)
    whole = packed.given > 0
    bad = np.zeros(len(packed.at), np.bool_)
    bad[whole] = ~last[behind[whole] - 1]
    site.of(packed.of).named(name).refuse(bad, "packed values that are not whole")
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    of_end = block[ends]
    first = behind[of_end] - packed.given[of_end]
    starts = np.maximum(starts, first)
    at = packed.at[of_end] + starts - first
    lanes = Lanes(
        site.data,
        at,
        packed.at[of_end] + ends + 1 - first,
        site.owners[packed.of[of_end]],
        site.faults,
    )
    return at, lanes.varints(name, cut=True).view(np.int64), packed.of.repeat(counts)
