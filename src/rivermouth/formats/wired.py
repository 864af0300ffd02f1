"""Columns whose values are written in another way than the format has it: ``as`` of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded, InArrow
from rivermouth.formats.strict_json.types import JsonSettings, schema_of, sql_name
from rivermouth.formats.text import column_of

BAD = "RM603"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 0001 and 9999
_DAY_US = 86_400_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

Reasons = Mapping[int, str]
"""Why values do not fit, by their places."""

_EXACT = Context(prec=76)
"""Python's own rounds to 28 digits."""


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
        columns, bad = found.rows.flatten(), dict[int, str]()
        for number, wire in self.wires.items():
            field = self.row.field(number)
            columns[number], reasons = self._made(columns[number], field.type, wire)
            bad |= {at: f".{field.name}: {reason}" for at, reason in reasons.items()}
        none = found.rows.is_null()
        rows = pa.StructArray.from_arrays(columns, fields=list(self.row), mask=none)
        faults = {at: (BAD, reason) for at, reason in bad.items()}
        return replace(found, rows=rows).with_faults(faults)

    def _made(self, column: pa.Array, kind: pa.DataType, wire: str) -> tuple[pa.Array, Reasons]:
        if wire == "days":
            return _days(column)
        if wire == "unscaled":
            return _decimals(column, kind)
        if wire == "zoned":
            return _zoned(column, kind, self.cut)
        return _times(column, kind, wire, cut=self.cut)


def _days(column: pa.Array) -> tuple[pa.Array, Reasons]:
    found = pc.fill_null(column, 0).to_numpy()
    bad = (found < _FIRST_DAY) | (found > _LAST_DAY)
    none = bad | ~_there(column)
    made = pa.array(np.where(none, 0, found).astype(np.int32), mask=none).cast(pa.date32())
    return made, _told(bad, column, "days out of the years 0001 to 9999")


def _times(
    column: pa.Array, kind: pa.DataType, unit: str, *, cut: bool
) -> tuple[pa.Array, Reasons]:
    found, per_second = pc.fill_null(column, 0).to_numpy(), _PER_SECOND[unit]
    first, until = _FIRST_DAY * 86_400 * per_second, (_LAST_DAY + 1) * 86_400 * per_second
    bad = (found < max(first, -(1 << 63))) | (found > min(until - 1, (1 << 63) - 1))
    part = np.zeros(len(found), np.bool_)
    if per_second > 1_000_000:
        us, rest = np.divmod(found, per_second // 1_000_000)
        part = (rest != 0) & (not cut)
    else:
        us = np.where(bad, 0, found) * (1_000_000 // per_second)
    none = bad | part | ~_there(column)
    made = pa.array(np.where(none, 0, us), mask=none).cast(kind)
    told = _told(bad, column, "out of the years 0001 to 9999")
    return made, {**told, **_told(part, column, "it has a part of a microsecond")}


def _decimals(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Reasons]:
    """From bytes in two's complement, the highest first; the scale is that of the column."""
    encoded = column.dictionary_encode()
    most, numbers, reasons = 10**kind.precision, list[Decimal | None](), dict[int, str]()
    for place, each in enumerate(encoded.dictionary.to_pylist()):
        number = int.from_bytes(each, "big", signed=True)
        fits = bool(each) and abs(number) < most
        numbers.append(Decimal(number).scaleb(-kind.scale, _EXACT) if fits else None)
        if not fits:
            reasons[place] = f"a number that {sql_name(kind)} does not hold exactly"
    made = pa.array(numbers, kind).take(encoded.indices)
    if not reasons:
        return made, {}
    places = pc.fill_null(encoded.indices, -1).to_pylist()
    return made, {at: reasons[each] for at, each in enumerate(places) if each in reasons}


def _zoned(column: pa.Array, kind: pa.DataType, cut: bool) -> tuple[pa.Array, Reasons]:
    zulu = pc.fill_null(pc.ends_with(column, "Z"), True)
    bad = ~zulu.to_numpy(zero_copy_only=False)
    texts = pc.if_else(zulu, pc.utf8_slice_codeunits(column, 0, -1), pa.scalar(None, pa.string()))
    made, reasons = column_of(texts, kind, JsonSettings(cut=cut))
    return made, {**reasons, **_told(bad, column, "it has no Z at its end")}


def _there(column: pa.Array) -> npt.NDArray[np.bool_]:
    there: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return there


def _told(bad: npt.NDArray[np.bool_], column: pa.Array, why: str) -> Reasons:
    return {at: f"{str(column[at].as_py())[:60]}: {why}" for at in np.flatnonzero(bad).tolist()}
