"""Columns from fields that have other names, or stand deeper in a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.config.paths import From, Steps
from rivermouth.formats.arrow import Decoded, InArrow
from rivermouth.formats.strict_json.types import schema_of


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
