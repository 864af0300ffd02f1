"""Columns whose values are written in another way than the format has it: ``as`` of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded, InArrow
from rivermouth.formats.shredded.columns import Make, Site, days, decimals, times
from rivermouth.formats.shredded.found import Found, Numbers, Spans
from rivermouth.formats.shredded.lanes import Bytes, Faults
from rivermouth.formats.strict_json.types import JsonSettings, schema_of, sql_name
from rivermouth.formats.text import column_of


@dataclass(frozen=True)
class Wired:
    """Makes the columns of ``row`` of those that ``inner`` decodes; it can be pickled.

    ``wires`` are how they are written, by their numbers. ``cut``: what is less than a microsecond
    is cut.
    """

    inner: InArrow
    row: pa.StructType
    wires: Mapping[int, str]
    cut: bool

    @classmethod
    def of(
        cls, inner: InArrow, columns: Sequence[Column], wires: Mapping[str, str], *, cut: bool
    ) -> Wired:
        """For these columns."""
        numbered = {n: wires[e.name] for n, e in enumerate(columns) if e.name in wires}
        return cls(inner, pa.struct(list(schema_of(columns))), numbered, cut)

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        found = self.inner.decode(values)
        columns, faults = found.rows.flatten(), Faults()
        for number, wire in self.wires.items():
            field, column = self.row.field(number), columns[number]
            if wire == "zoned":
                columns[number] = _zoned(column, field, self.cut, faults)
            else:
                make = _made_by(wire, field.type, self.cut)
                columns[number] = _of_those_there(column, make, field.name, faults)
        none = found.rows.is_null()
        rows = pa.StructArray.from_arrays(columns, fields=list(self.row), mask=none)
        return replace(found, rows=rows).with_faults(faults.why)


def _made_by(wire: str, kind: pa.DataType, cut: bool) -> Make:
    if wire == "days":
        return days
    if wire == "unscaled":  # the scale is that of the column
        return decimals(kind.scale, kind, sql_name(kind))
    return times(kind, wire, cut=cut)


def _of_those_there(column: pa.Array, make: Make, where: str, faults: Faults) -> pa.Array:
    """What is made of the values; null where there is none."""
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    given = column.take(pa.array(there))
    found: Found = Numbers(np.empty(0, np.int64))
    buffer = pa.py_buffer(b"")
    if pa.types.is_binary(given.type):
        _, offsets, data = given.buffers()
        begins = np.frombuffer(offsets, np.int32)[given.offset :][: len(given) + 1].astype(np.int64)
        buffer, found = data or buffer, Spans(begins[:-1], np.diff(begins))
    else:
        found = Numbers(given.to_numpy())
    made = make(found, Site(buffer, Bytes.of(buffer), faults, there, where))
    place, none = np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
    place[there], none[there] = np.arange(len(there)), False
    return made.take(pa.array(place, mask=none))


def _zoned(column: pa.Array, field: pa.Field, cut: bool, faults: Faults) -> pa.Array:
    """Of text that ends with a Z."""
    zulu = pc.fill_null(pc.ends_with(column, "Z"), True)
    texts = pc.if_else(zulu, pc.utf8_slice_codeunits(column, 0, -1), pa.scalar(None, pa.string()))
    made, reasons = column_of(texts, field.type, JsonSettings(cut=cut))
    for at in np.flatnonzero(~zulu.to_numpy(zero_copy_only=False)).tolist():
        reasons[at] = f"{str(column[at].as_py())[:60]}: it has no Z at its end"
    for at, reason in reasons.items():
        faults.add(np.array([at]), f"{field.name}: {reason}")
    return made
