"""Columns from fields that have other names, or stand deeper in a record; and arrays whose elements
become rows, with their record itself as such an array.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.config.each import ROWS, WHOLE
from rivermouth.config.paths import From, Steps
from rivermouth.formats.arrow import NO_FIELD, Decoded, InArrow, parents
from rivermouth.formats.strict_json.decoder import BAD
from rivermouth.formats.strict_json.types import schema_of

_BEFORE, _AFTER = f'{{"{WHOLE}":'.encode(), b"}"
_MAY_BE_SEVERAL = r'\]\s*,\s*"(?:[^"\\]|\\.)*"\s*:'
"""Where a text is more than an array, and yet the object around it is one."""
_ONE = json.JSONDecoder()
_SPACES = " \t\r\n"


@dataclass(frozen=True)
class Projected:
    """Decodes by ``inner``; ``paths`` are those of each field of ``row``: the first with a value
    counts. It can be pickled.
    """

    inner: InArrow
    row: pa.StructType
    paths: tuple[tuple[Steps, ...], ...]

    @classmethod
    def of(cls, inner: InArrow, columns: Sequence[Column], fields: Sequence[From]) -> Projected:
        """For these columns; one without a path is the field of its name."""
        given = {each.column: each.paths for each in fields if each.texts}
        paths = tuple(given.get(each.name, ((each.name,),)) for each in columns)
        return cls(inner, pa.struct(list(schema_of(columns))), paths)

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        found = self.inner.decode(values)
        types = (each.type for each in self.row)
        both = zip(self.paths, types, strict=True)
        columns = [at_first(found.rows, paths, kind) for paths, kind in both]
        none = found.rows.is_null()
        rows = pa.StructArray.from_arrays(columns, fields=list(self.row), mask=none)
        return Decoded(rows, found.reasons, found.codes)


def at_first(rows: pa.Array, paths: Sequence[Steps], kind: pa.DataType | None) -> pa.Array:
    """What stands at the first path that has a value; nulls of type ``kind`` without a path."""
    if not paths:
        return pa.nulls(len(rows), kind)
    values = [_at(rows, each) for each in paths]
    return values[0] if len(values) == 1 else pc.coalesce(*values)


def _at(rows: pa.Array, steps: Steps) -> pa.Array:
    """What stands at a path; null where nothing does."""
    for step in steps:
        if isinstance(step, int):
            rows = _item(rows, step)
        else:
            rows = pc.struct_field(rows, [rows.type.get_field_index(step)])
    return rows


def _item(lists: pa.ListArray, number: int) -> pa.Array:
    """The element of each array at an index; null where there is none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    places = lists.offsets.to_numpy()[:-1].astype(np.int64) + number
    return lists.values.take(pa.array(places, mask=lengths <= number))


@dataclass(frozen=True)
class AsField:
    """Decodes JSON values as the field ``$`` of an object; it can be pickled."""

    inner: InArrow

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        given = values.cast(pa.binary())
        there = pc.fill_null(pc.greater(pc.binary_length(given), 0), False)
        some = pc.if_else(there, given, pa.scalar(None, pa.binary()))
        whole = pc.binary_join_element_wise(_BEFORE, some, _AFTER, b"")
        found = self.inner.decode(whole)
        may = pc.and_(found.rows.is_valid(), pc.match_substring_regex(given, _MAY_BE_SEVERAL))
        doubtful = np.flatnonzero(pc.fill_null(may, False).to_numpy(zero_copy_only=False))
        texts = zip(doubtful.tolist(), given.take(pa.array(doubtful)).to_pylist(), strict=True)
        more = "the value is not JSON: something stands after the array"
        faults = {at: (BAD, more) for at, text in texts if not _is_one(text)}
        null = pc.and_(found.rows.is_valid(), found.rows.flatten()[0].is_null())
        for at in np.flatnonzero(null.to_numpy(zero_copy_only=False)).tolist():
            faults[at] = (BAD, "the value is null, not an array")
        return found.with_faults(faults)


def _is_one(text: bytes) -> bool:
    """Whether this is one array: what stands around it is JSON."""
    shown = text.decode().strip(_SPACES)
    return _ONE.raw_decode(shown)[1] == len(shown)


@dataclass(frozen=True)
class Elements:
    """Decodes by ``inner``; a record is bad where an element shares no field with the columns: all
    of it is null. It can be pickled.
    """

    inner: InArrow

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        found = self.inner.decode(values)
        lists = pc.struct_field(found.rows, [found.rows.type.get_field_index(ROWS)])
        elements = lists.flatten()
        nothing = reduce(pc.and_, (each.is_null() for each in elements.flatten()))
        if not nothing.true_count:  # as nearly always
            return found
        records = parents(lists)
        faults: dict[int, tuple[str, str]] = {}
        for at in np.flatnonzero(nothing.to_numpy(zero_copy_only=False)).tolist():
            record = int(records[at])
            number = at - int(np.searchsorted(records, record))
            reason = f"the element {number} has no field of the columns"
            faults.setdefault(record, (NO_FIELD, reason))
        return found.with_faults(faults)
