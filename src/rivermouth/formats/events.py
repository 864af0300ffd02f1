"""Events of a change stream: each says what happened to a row."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.config import Column
from rivermouth.config.envelope import Envelope
from rivermouth.config.envelope import Events as Paths
from rivermouth.config.paths import From, Steps
from rivermouth.formats.arrow import (
    NO_EVENT,
    NO_FIELD,
    NOT_TOLD,
    OTHER_KEY,
    SKIPPED,
    TRUNCATED,
    Decoded,
    InArrow,
    nulled,
)
from rivermouth.formats.arrow import coded as code_where
from rivermouth.formats.projected import at_first
from rivermouth.formats.strict_json.types import schema_of

KEPT = pa.list_(pa.string())
PerColumn = tuple[tuple[Steps, ...], ...]


@dataclass(frozen=True)
class Events:
    """Decodes events, which ``inner`` decodes, by an ``envelope``; it can be pickled.

    Of each field of ``row`` ``put`` are its paths in an event that puts a row, and ``deleted`` in
    one that deletes it; ``old`` are those of the keys that the row had before. ``kept`` may have
    values that are not told. ``op``, ``data`` and ``before`` are those of the envelope. ``ordered``
    are the columns by which rows are ordered: a deletion has to tell them. ``removes``: a deletion
    leaves no row. ``empty``: a row in which all is null is none that shares no field with the
    columns.
    """

    inner: InArrow
    row: pa.StructType
    envelope: Envelope
    op: tuple[Steps, ...]
    data: tuple[Steps, ...]
    before: tuple[Steps, ...]
    put: PerColumn
    deleted: PerColumn
    old: Mapping[str, tuple[Steps, ...]]
    kept: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    empty: bool = False
    removes: bool = True

    @classmethod
    def of(
        cls,
        inner: InArrow,
        columns: Sequence[Column],
        envelope: Envelope,
        paths: Paths,
        kept: Sequence[str],
        ordered: Sequence[str],
        *,
        empty: bool,
        removes: bool,
    ) -> Events:
        """For these columns, of which events may leave out the values of ``kept``."""
        row = pa.struct(list(schema_of(columns)))
        one = (paths.op.paths, _record(paths.data), _record(paths.before))
        put, gone = (tuple(e.paths for e in each) for each in (paths.put, paths.deleted))
        old = {each.column: each.paths for each in paths.old}
        may = (tuple(kept), tuple(ordered))
        return cls(inner, row, envelope, *one, put, gone, old, *may, empty, removes)

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``; the rows of ``deletes`` have what is told of them."""
        found, its = self.inner.decode(values), self.envelope
        events, read = found.rows, found.rows.is_valid()
        op = at_first(events, self.op, pa.string())
        deletes, skips, empties = (
            _is_one(op, each) for each in (its.delete_when, its.skip_when, its.truncate_when)
        )
        puts = _is_one(op, its.put_when) if its.put_when else op.is_valid()
        puts = pc.and_not(puts, pc.or_(deletes, pc.or_(skips, empties)))
        put, gone = (
            pc.and_not(pc.and_(these, _there(events, each)), _beside_others(events, each))
            for these, each in ((puts, self.data), (deletes, self.before))
        )
        rows = self._rows(events, self.put, put)
        kept = self._untold(rows)
        if deletes.true_count:
            rows = pc.if_else(gone, self._rows(events, self.deleted, gone), rows)
        lacks = pc.and_not(read, pc.or_(pc.or_(put, gone), pc.or_(skips, empties)))
        placeless = pc.and_(gone, self._without_order(rows))
        codes = [found.codes, code_where(pc.and_(read, skips), SKIPPED)]
        codes += [code_where(pc.and_(read, empties), TRUNCATED), code_where(lacks, NO_EVENT)]
        codes.append(code_where(placeless, NO_EVENT))
        codes.append(code_where(pc.and_(put, self._other_key(events, rows)), OTHER_KEY))
        untold = pc.and_(_is_one(op, its.create_when), kept.is_valid())
        codes.append(code_where(pc.and_(put, untold), NOT_TOLD))
        reasons = [found.reasons]
        if lacks.true_count:
            reasons.append(_reasons(lacks, op, pc.or_(puts, deletes)))
        if placeless.true_count:
            why = f"a deletion that does not tell {', '.join(self.ordered)}, so it has no place"
            reasons.append(pc.if_else(placeless, why, pa.scalar(None, pa.string())))
        if not self.empty:
            none = _of_nulls(rows)
            codes.append(code_where(none, NO_FIELD))
            if none.true_count:
                rows = nulled(rows, none.to_numpy(zero_copy_only=False))
        deletes = gone if self.removes else None
        return Decoded(rows, pc.coalesce(*reasons), pc.coalesce(*codes), deletes, kept)

    def _untold(self, rows: pa.StructArray) -> pa.ListArray:
        """The columns that each row does not tell; null where it tells all."""
        told = dict(zip((each.name for each in rows.type), rows.flatten(), strict=True))
        found = {e: _is_placeholder(told[e], self.envelope.unavailable) for e in self.kept}
        found = {name: these for name, these in found.items() if these.true_count}
        return _names(found) if found else pa.nulls(len(rows), KEPT)

    def _other_key(self, events: pa.StructArray, rows: pa.StructArray) -> pa.BooleanArray:
        """Which events tell that the row had another key before."""
        found = pa.repeat(False, len(rows))
        for name, paths in self.old.items():
            now = rows.field(name)
            differs = pc.not_equal(at_first(events, paths, now.type), now)
            found = pc.or_(found, pc.fill_null(differs, False))
        return found

    def _without_order(self, rows: pa.StructArray) -> pa.BooleanArray:
        """Which rows lack a value by which they are ordered: any row that stands would be newer."""
        found = pa.repeat(False, len(rows))
        for each in self.ordered:
            found = pc.or_(found, rows.field(each).is_null())
        return found

    def _rows(self, events: pa.StructArray, paths: PerColumn, these: pa.Array) -> pa.StructArray:
        types = (each.type for each in self.row)
        columns = [at_first(events, its, kind) for its, kind in zip(paths, types, strict=True)]
        none = pc.invert(these)
        return pa.StructArray.from_arrays(columns, fields=list(self.row), mask=none)


def _record(path: From) -> tuple[Steps, ...]:
    """The paths; none where the record itself is meant."""
    return () if path.texts == ("",) else path.paths


def _is_one(op: pa.Array, words: Sequence[str]) -> pa.BooleanArray:
    return pc.is_in(op, value_set=pa.array(words, pa.string()))


def _there(events: pa.StructArray, paths: Sequence[Steps]) -> pa.BooleanArray:
    """Where something stands at one of the paths."""
    if not paths:
        return events.is_valid()
    found = [at_first(events, [each], None).is_valid() for each in paths]
    return found[0] if len(found) == 1 else pc.or_(*found)


def _beside_others(events: pa.StructArray, paths: Sequence[Steps]) -> pa.BooleanArray:
    """Where the row is an element of an array that has others."""
    found = pa.repeat(False, len(events))
    for each in paths:
        if isinstance(each[-1], int):
            number = pc.list_value_length(at_first(events, [each[:-1]], None))
            found = pc.or_(found, pc.fill_null(pc.greater(number, 1), False))
    return found


def _reasons(lacks: pa.BooleanArray, op: pa.StringArray, known: pa.BooleanArray) -> pa.StringArray:
    """Why these are no events: it is not known what happened, or to which row."""
    shown = pc.utf8_slice_codeunits(pc.fill_null(op, "null"), 0, 40)
    strange = pc.binary_join_element_wise("what happened is not known: ", shown, "")
    rowless = pc.binary_join_element_wise("there is not one row of the event ", shown, "")
    none = pa.scalar(None, pa.string())
    return pc.if_else(lacks, pc.if_else(known, rowless, strange), none)


def _of_nulls(rows: pa.StructArray) -> pa.BooleanArray:
    """Which rows have no value in any column."""
    found = rows.is_valid()
    for each in rows.flatten():
        if not each.null_count:
            return pa.array([False] * len(rows), pa.bool_())
        found = pc.and_(found, each.is_null())
    return found


def _is_placeholder(column: pa.Array, text: str) -> pa.BooleanArray:
    """Where a ``text`` stands in the form that Debezium's connector for PostgreSQL gives it in a
    column of the type; see ``UnchangedToastedPlaceholder`` there.
    """
    kind, raw = column.type, text.encode()
    if pa.types.is_map(kind):
        return _is_map(column, text)
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        return _is_list(column, [*np.frombuffer(raw, np.int8).tolist()])
    if pa.types.is_list(kind) and pa.types.is_string(kind.value_type):
        named = str(uuid.UUID(bytes=hashlib.md5(raw).digest(), version=3))  # as Java does
        return pc.or_(_is_list(column, [text]), _is_list(column, [named]))
    if pa.types.is_list(kind):
        return _is_list(column, [raw])
    if pa.types.is_binary(kind):
        return pc.is_in(column, value_set=pa.array([raw], kind))
    as_json = json.dumps({text: text}, separators=(",", ":"), ensure_ascii=False)  # an hstore
    return pc.is_in(column, value_set=pa.array([text, as_json], kind))


def _is_list(column: pa.ListArray, values: Sequence[object]) -> pa.BooleanArray:
    """Where a list has exactly these values."""
    long = pc.fill_null(pc.equal(pc.list_value_length(column), len(values)), False)
    these = np.flatnonzero(long.to_numpy(zero_copy_only=False))
    found, every = np.zeros(len(column), np.bool_), pa.array(values, column.type.value_type)
    if len(these):
        flat = column.take(pa.array(these)).flatten()
        due = every.take(pa.array(np.tile(np.arange(len(values)), len(these))))
        same = pc.fill_null(pc.equal(flat, due), False).to_numpy(zero_copy_only=False)
        found[these] = same.reshape(-1, len(values)).all(axis=1)
    return pa.array(found)


def _is_map(column: pa.MapArray, text: str) -> pa.BooleanArray:
    offsets = column.offsets.to_numpy()
    there = column.is_valid().to_numpy(zero_copy_only=False)
    these = np.flatnonzero(there & (np.diff(offsets) == 1))
    at, found = pa.array(offsets[these]), np.zeros(len(column), np.bool_)
    both = pc.and_(*(pc.equal(each.take(at), text) for each in (column.keys, column.items)))
    found[these] = pc.fill_null(both, False).to_numpy(zero_copy_only=False)
    return pa.array(found)


def _names(these: Mapping[str, pa.BooleanArray]) -> pa.ListArray:
    """The names of each row; null where it has none."""
    flags = np.stack([each.to_numpy(zero_copy_only=False) for each in these.values()], axis=1)
    counts = flags.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    names = pa.array([*these], pa.string()).take(pa.array(np.nonzero(flags)[1]))
    none = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=none)
