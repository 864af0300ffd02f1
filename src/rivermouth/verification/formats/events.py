"""Events of a change stream: each says what happened to a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.projected import Make, Steps, at, first, note, steps, type_of
from rivermouth.verification.formats.reader import FIELDS, GONE, NoRow, Reader, Undecodable, Untold

_OPERATION, _ROOT = "_op", "$."


@dataclass(frozen=True)
class Told:
    """What an entry names of its events: the ``envelope``, and ``paths`` of columns.

    ``required`` are the columns that are NOT NULL, and ``empty`` says whether a row may have no
    value at all. An event that deletes has to tell the columns ``ordered``, by which rows are
    ordered, and no event may tell that the ``keys`` of a row were others before. ``removes``: an
    event that deletes leaves no row, and tells nothing but these columns.
    """

    envelope: Mapping[str, Sequence[str]]
    paths: Mapping[str, Sequence[str]]
    required: Sequence[str]
    ordered: Sequence[str]
    keys: Sequence[str]
    removes: bool
    empty: bool

    def of(self, name: str, base: str) -> list[Steps]:
        """The paths of a column in the record, where those of rows begin at ``base``."""
        given = self.paths.get(name)
        if given is None and name == _OPERATION:
            return [steps(each) for each in self.envelope["op"]]
        found: list[Steps] = []
        for text in given or ():
            if text.startswith(_ROOT):
                roots = self.envelope.get("roots", [""])
                found += [steps(root + text.removeprefix(_ROOT)) for root in roots]
            else:
                found += [[*above, *steps(text)] for above in self.above(base)]
        return found if given else [[*above, name] for above in self.above(base)]

    def above(self, base: str) -> list[Steps]:
        """The paths of rows; an empty one is the record itself."""
        return [steps(each) if each else [] for each in self.envelope.get(base, ())]

    def is_untold(self, value: Any) -> bool:
        """Whether a value stands for one that is not told: each type has a form for that."""
        return any(
            value == form for text in self.envelope.get("unavailable", ()) for form in _forms(text)
        )

    @property
    def fixed(self) -> set[str]:
        """The columns that all events of a key tell."""
        return {*self.keys, *self.ordered}

    def check(self, row: Mapping[str, Any], was: Mapping[str, Any], *, deletes: bool) -> None:
        """Raises Undecodable where a row may not be so: it goes, or ``was`` its key before."""
        if not self.empty and all(each is None for each in row.values()):
            raise Undecodable("it has none of the fields of the schema")
        if deletes and any(row.get(each) is None for each in self.ordered):
            raise Undecodable("a deletion without a place in the order")
        stays = not (deletes and self.removes)
        if stays and any(row.get(each) is None for each in self.required):
            raise Undecodable("a NOT NULL column is null")
        if any(each is not None and each != row[name] for name, each in was.items()):
            raise Undecodable("the row had another key before")

    def happened(self, op: Any) -> bool:
        """Whether the row was deleted, else it was put.

        Raises NoRow where nothing happened to a row, Undecodable where nobody knows what happened.
        """
        its = {each: self.envelope.get(f"{each}_when", []) for each in _KINDS}
        if op in its["skip"]:
            raise NoRow("nothing happened to a row")
        if op in its["delete"]:
            return True
        if op in its["truncate"] or (op not in its["put"] if its["put"] else op is None):
            raise Undecodable(f"an event without a row: {op!r}")
        return False


_KINDS = ("delete", "skip", "truncate", "put")


def events(
    make: Make, schema: pa.Schema, columns: Sequence[str], told: Told, settings: dict[str, Any]
) -> Reader:
    """Reads the wanted columns of the row that an event tells of, and ``GONE``.

    Without columns it only tells whether anything happened to a row.
    """
    op = [steps(each) for each in told.envelope["op"]]
    every = [each for each in settings.get(FIELDS, ()) if columns]
    put = {each: told.of(each, "data") for each in every}
    of_deleted = [each for each in every if not told.removes or each in told.fixed]
    gone = {each: told.of(each, "before") for each in of_deleted}
    old = {each: told.of(each, "old") for each in every if each in told.keys}
    kinds: dict[str, Any] = {}
    for each in op:
        note(kinds, each, pa.string())
    for paths in (put, gone, old):
        for name, its in paths.items():
            for each in its:
                note(kinds, each, schema.field(name).type)
    fields = [*dict.fromkeys(str(each[0]) for each in (*op, *_all(put), *_all(gone), *_all(old)))]
    types = pa.schema([(name, type_of(each)) for name, each in kinds.items()])
    inner = make(types, [*kinds], {**settings, FIELDS: fields})

    def read(value: bytes) -> tuple[Any, ...]:
        record = dict(zip(kinds, inner(value), strict=True))
        what = first(record, op)
        deletes = told.happened(what)
        if not columns:
            return ()
        above = told.above("before" if deletes else "data")
        if all(above) and all(at(record, each) is None for each in above):
            raise Undecodable("the event has no row")
        arrays = (at(record, each[:-1]) for each in above if each and isinstance(each[-1], int))
        if any(len(each or ()) > 1 for each in arrays):
            raise Undecodable("the event has several rows")
        paths = gone if deletes else put
        row = {name: first(record, its) for name, its in paths.items()}
        was = {} if deletes else {name: first(record, its) for name, its in old.items()}
        told.check(row, was, deletes=deletes)
        values = {each: row.get(each) for each in columns} | {GONE: deletes and told.removes}
        if told.keys and not deletes:
            may = [each for each in every if each not in told.fixed and row.get(each) is not None]
            stays = {e: Untold(row[e]) for e in may if told.is_untold(row[e])}
            if stays and what in told.envelope.get("create_when", []):
                raise Undecodable("it creates a row, and does not tell all of its values")
            values |= stays
        return tuple(values[each] for each in columns)

    return read


@cache
def _forms(text: str) -> tuple[Any, ...]:
    """A text as what Debezium's connector writes: text, bytes, and those of arrays and hstore."""
    raw = text.encode()
    digest = bytearray(hashlib.md5(raw).digest())
    digest[6], digest[8] = digest[6] & 0x0F | 0x30, digest[8] & 0x3F | 0x80
    hexed = digest.hex()
    name = "-".join(hexed[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    signed = [each - 256 if each > 127 else each for each in raw]
    quoted = json.dumps(text, ensure_ascii=False)
    hstore = f"{{{quoted}:{quoted}}}"
    return text, hstore, raw, [text], [name], [raw], signed, [(text, text)], [[text, text]]


def paths_in_keys(
    envelope: Mapping[str, Any], paths: Mapping[str, Sequence[str]], keys: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Where message keys have the key columns: as a row has them, in the wrapper of events."""
    roots = envelope.get("roots", [""])
    given = {each: [t.removeprefix(_ROOT) for t in paths.get(each, [each])] for each in keys}
    return {each: [root + text for root in roots for text in given[each]] for each in keys}


def _all(paths: Mapping[str, Sequence[Steps]]) -> list[Steps]:
    return [each for its in paths.values() for each in its]
