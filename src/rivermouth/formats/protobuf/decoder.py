"""Records of Protobuf to Arrow rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import NO_FIELD, Decoded
from rivermouth.formats.framing import OTHER_SCHEMA, Bare, Confluent, Schemas
from rivermouth.formats.protobuf.plan import DoesNotFit, Plan, plan
from rivermouth.formats.protobuf.rows import rows
from rivermouth.formats.protobuf.scan import Parts
from rivermouth.formats.protobuf.schema import Types
from rivermouth.formats.shredded.columns import Site
from rivermouth.formats.shredded.lanes import Ints, Lanes
from rivermouth.formats.shredded.reading import (
    Read,
    Settings,
    Unreadable,
    decode,
    row_of,
    settings_of,
)


@dataclass(frozen=True)
class Protobuf:
    """Decodes records of Protobuf; it can be pickled.

    ``text`` are the types (``Types.to_json``), and ``message`` is the name of the message that all
    records are. Without ``text`` each names its own, of ``schemas``, as serialisers with a registry
    write it: a number, and where the message stands in its file.
    """

    row: pa.StructType
    settings: Settings
    text: str | None = None
    message: str = ""
    schemas: Schemas | None = None

    def unfit(self, text: str) -> str:
        """Why no record of some types can be read, by their first message; empty where they can."""
        try:
            message = self.message or types_from(text).top[0].name
        except (ValueError, LookupError, TypeError):
            return f"no schema of Protobuf: {text}"
        found = reading(text, message, self.row, self.settings)
        return found.reason if isinstance(found, Unreadable) else ""

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``. Raises SchemasUnknown."""
        if self.text is not None:
            read = reading(self.text, self.message, self.row, self.settings)
            return decode(values, self.row, Bare(read))
        reader = partial(_of_file, row=self.row, settings=self.settings)
        return decode(values, self.row, Confluent(self.schemas or {}, reader))


@lru_cache(maxsize=1_000)
def types_from(text: str) -> Types:
    """The types of a text; the same object for the same text."""
    return Types.from_json(text)


@lru_cache(maxsize=1_000)
def reading(text: str, message: str, row: pa.StructType, settings: Settings) -> Read | Unreadable:
    """How records of a message are read, or why none of them can be."""
    types = types_from(text)
    if message not in types.messages:
        return Unreadable(OTHER_SCHEMA, f"there is no message {message}")
    names = {settings.same(each.name) for each in types.messages[message].fields}
    if not settings.empty and names.isdisjoint(settings.same(each.name) for each in row):
        return Unreadable(NO_FIELD, f"{message} has none of the columns")
    try:
        return partial(_rows, plan(types, message, row, settings))
    except DoesNotFit as fault:
        return Unreadable(OTHER_SCHEMA, str(fault))


def _rows(how: Plan, lanes: Lanes, site: Site) -> pa.StructArray:
    count = len(lanes)
    found: pa.StructArray = rows(how, Parts(lanes, np.arange(count), count), site)
    return found


def _of_file(text: str, row: pa.StructType, settings: Settings) -> Read | Unreadable:
    """Reads the path of the message ahead, and then the message."""
    try:
        types_from(text)
    except (ValueError, LookupError, TypeError):
        return Unreadable(OTHER_SCHEMA, f"no schema of Protobuf: {text}")

    def read(lanes: Lanes, site: Site) -> pa.StructArray:
        found: list[pa.StructArray] = []
        order: list[Ints] = []
        for path, its in _paths(lanes):
            some = lanes.only(its)
            order.append(its)
            found.append(_at(text, path, row, settings, some, site.of(its)))
        places = np.empty(len(lanes), np.int64)
        whole = np.concatenate(order) if order else np.zeros(0, np.int64)
        places[whole] = np.arange(len(whole))
        return pa.concat_arrays([pa.array([], row), *found]).take(pa.array(places))

    return read


def _at(
    text: str,
    path: Sequence[int],
    row: pa.StructType,
    settings: Settings,
    lanes: Lanes,
    site: Site,
) -> pa.StructArray:
    message = types_from(text).at(path)
    if message is None:
        how: Read | Unreadable = Unreadable(OTHER_SCHEMA, f"there is no message at {[*path]}")
    else:
        how = reading(text, message.name, row, settings)
    if isinstance(how, Unreadable):
        site.faults.add(lanes.records, how.reason, how.code)
        return pa.nulls(len(lanes), row)
    return how(lanes, site)


_LONGEST = 32
"""The most messages in each other."""


def _paths(lanes: Lanes) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """The lanes by the path that stands ahead, which is read. One zero stands for the path 0."""
    counts = lanes.zigzags("the path of the message")
    lanes.refuse((counts < 0) | (counts > _LONGEST), "the path of the message is too long")
    counts = np.clip(counts, 0, _LONGEST)
    paths = np.zeros((len(lanes), int(counts.max(initial=1)) or 1), np.int64)
    for at in range(paths.shape[1]):
        its = np.flatnonzero(counts > at)
        some = lanes.only(its)
        paths[its, at] = some.zigzags("the path of the message")
        lanes.back(its, some)
    lengths = np.maximum(counts, 1)
    both = np.column_stack((lengths, paths))
    for each in np.unique(both, axis=0).tolist():
        its = np.flatnonzero((both == each).all(axis=1))
        yield tuple(each[1 : 1 + each[0]]), its


def decoder(columns: Sequence[Column], settings: Mapping[str, Any]) -> Protobuf:
    """What decodes values that are messages of Protobuf."""
    text, schemas = settings.get("schema_file"), settings.get("schemas", {})
    message = settings.get("message", "")
    if text is not None and not message:
        message = types_from(text).top[0].name
    return Protobuf(row_of(columns), settings_of(settings), text, message, schemas)
