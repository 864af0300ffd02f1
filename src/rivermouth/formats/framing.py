"""What stands ahead of a value: the number of the schema that it was written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.errors.registry import SchemasUnknown
from rivermouth.formats.arrow import EMPTY, Decoded, InArrow, parents
from rivermouth.formats.shredded.lanes import Flags, Ints, Lanes
from rivermouth.formats.shredded.reading import Group, Read, Unreadable, Values

NOT_FRAMED = "RM611"
"""The code of a value without a header that names its schema."""
NO_SUCH_SCHEMA = "RM612"
"""The code of a value whose schema the registry does not know."""
OTHER_SCHEMA = "RM613"
"""The code of a value whose schema does not fit the columns."""
_HEADER = 5


Schemas = Mapping[int, str | None]
"""The schemas by their numbers; None stands for a number that the registry does not know."""
Reader = Callable[[str], Read | Unreadable]
"""How values of a schema are read, from its text; or why none of them can be."""


@dataclass(frozen=True)
class Bare:
    """Nothing stands ahead: all values are of one schema."""

    read: Read | Unreadable

    def __call__(self, values: Values) -> Iterator[Group]:
        """All values, or their fault."""
        if isinstance(self.read, Unreadable):
            values.faults.add(values.numbers, self.read.reason, self.read.code)
        else:
            yield Group(values.lanes(), self.read)


@dataclass(frozen=True)
class Confluent:
    """A zero byte, and the number of the schema in four bytes, the highest first."""

    schemas: Schemas
    reader: Reader

    def __call__(self, values: Values) -> Iterator[Group]:
        """The values by their schemas. Raises SchemasUnknown."""
        lanes = values.lanes()
        start, taken = lanes.span(np.full(len(lanes), _HEADER), "the number of the schema")
        framed = (taken == _HEADER) & (values.data.codes[start] == 0)
        _say_not_framed(values, ~framed)
        numbers = _big_endian(values, start + 1)
        found = np.unique(numbers[framed]).tolist()
        unknown = [each for each in found if each not in self.schemas]
        if unknown:
            raise SchemasUnknown(unknown)
        for number in found:
            yield from self._of(values, lanes, number, framed & (numbers == number))

    def _of(self, values: Values, lanes: Lanes, number: int, its: Flags) -> Iterator[Group]:
        text, records = self.schemas[number], lanes.records[its]
        if text is None:
            reason = f"the registry does not know the schema {number}"
            values.faults.add(records, reason, NO_SUCH_SCHEMA)
            return
        read = self.reader(text)
        if isinstance(read, Unreadable):
            values.faults.add(records, f"schema {number}: {read.reason}", read.code)
            return
        yield Group(lanes if its.all() else lanes.only(np.flatnonzero(its)), read)


@dataclass(frozen=True)
class Unframed:
    """Decodes what follows the number of a schema, whatever that is; it can be pickled."""

    inner: InArrow

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        given = values.cast(pa.binary())
        there = pc.fill_null(pc.greater(pc.binary_length(given), 0), False)
        header = pc.binary_slice(given, 0, _HEADER)
        zero = pc.equal(pc.binary_slice(given, 0, 1), b"\0")
        framed = pc.fill_null(pc.and_(pc.equal(pc.binary_length(header), _HEADER), zero), False)
        rest = pc.if_else(
            framed, pc.binary_replace_slice(given, 0, _HEADER, b""), pa.scalar(None, pa.binary())
        )
        bad = np.flatnonzero(pc.and_not(there, framed).to_numpy(zero_copy_only=False))
        heads = header.take(pa.array(bad)).to_pylist()
        faults = {
            at: (NOT_FRAMED, _not_framed(e)) for at, e in zip(bad.tolist(), heads, strict=True)
        }
        alone = pc.fill_null(pc.equal(pc.binary_length(rest), 0), False)
        for at in np.flatnonzero(alone.to_numpy(zero_copy_only=False)).tolist():
            faults[at] = (EMPTY, "nothing follows after the number of the schema")
        return self.inner.decode(rest).with_faults(faults)


_ID = 8


def by_header(what: str, inner: InArrow, values: pa.Array, headers: pa.Array) -> Decoded:
    """Decodes values, or message keys, by ``inner``, as if the number of the schema stood ahead.

    ``what``: ``value`` or ``key``. The last header ``apicurio.<what>.contentId`` has the number, in
    eight bytes, the highest first.
    """
    name, given = f"apicurio.{what}.contentId", values.cast(pa.binary())
    number = _last(headers, name)
    length = pc.equal(pc.binary_length(number), _ID)
    fits = pc.fill_null(pc.and_(length, pc.equal(pc.binary_slice(number, 0, 4), b"\0" * 4)), False)
    low = pc.if_else(fits, pc.binary_slice(number, 4, _ID), pa.scalar(None, pa.binary()))
    there = pc.fill_null(pc.greater(pc.binary_length(given), 0), False)
    framed = pc.binary_join_element_wise(b"\0", low, given, b"")
    found = inner.decode(pc.if_else(there, framed, pa.scalar(None, pa.binary())))
    bad = np.flatnonzero(pc.and_not(there, fits).to_numpy(zero_copy_only=False))
    reason = f"it has no header {name} with the number of its schema"
    return found.with_faults(dict.fromkeys(bad.tolist(), (NOT_FRAMED, reason)))


def _last(headers: pa.ListArray, name: str) -> pa.BinaryArray:
    """The value of the last header of the name; null where there is none."""
    every = headers.flatten()
    its = np.flatnonzero(pc.equal(every.field("key"), name).to_numpy(zero_copy_only=False))
    records = parents(headers)[its]
    place, none = np.zeros(len(headers), np.int64), np.ones(len(headers), np.bool_)
    place[records], none[records] = its, False  # of several the last one counts
    return every.field("value").take(pa.array(place, mask=none))


def _big_endian(values: Values, at: Ints) -> Ints:
    numbers: Ints = values.data.words[at].astype(np.uint32).byteswap().astype(np.int64)
    return numbers


def _say_not_framed(values: Values, bad: Flags) -> None:
    for at in np.flatnonzero(bad).tolist():
        begin, end = int(values.begins[at]), int(values.ends[at])
        head = values.data.codes[begin : min(begin + _HEADER, end)].tobytes()
        values.faults.add(values.numbers[at : at + 1], _not_framed(head), NOT_FRAMED)


def _not_framed(head: bytes) -> str:
    return f"no zero byte and number of a schema ahead: it begins with {head.hex(' ')}"
