"""Record values, read as the driver of each entry decoded them: by its columns and its decoder.

A column that was added later is null in the rows from before: those records were decoded without
it, whatever they hold under its name. In the same way the version and the settings of the decoder
are those of the entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from rivermouth.verify.formats.reader import Reader, UnknownDecoder
from rivermouth.verify.ledger.entry import LedgerEntry
from rivermouth.verify.subject import Decoder, Subject
from rivermouth.verify.tables.ports import Unreadable

Made = TypeVar("Made")


class EntryReaders:
    """Gives the reader of ``columns`` for each effective entry, by its index."""

    def __init__(self, subject: Subject, schema: pa.Schema, columns: Sequence[str]) -> None:
        self._entries = subject.ledger.effective
        self._subject = subject
        self._schema = schema
        self._columns = tuple(columns)
        self._known: dict[int, Reader] = {}
        self._made: dict[tuple[tuple[str, ...], str], Reader] = {}

    def of(self, entry: int) -> Reader:
        """Reads all columns; those that the entry did not know are null.

        An entry of format 1 does not tell its columns: then all are read. Raises Unreadable where
        the entry names a decoder that is not known.
        """
        if entry not in self._known:
            its = self._entries[entry]
            told = its.columns
            names = tuple(each for each in self._columns if told is None or each in told)
            key = names, _text(its.decoder)
            if key not in self._made:
                self._made[key] = _known(its, lambda: self._make(names, its.decoder))
            self._known[entry] = self._made[key]
        return self._known[entry]

    def _make(self, names: tuple[str, ...], decoder: Decoder) -> Reader:
        read = self._subject.reader(self._schema, names, decoder)
        return read if names == self._columns else self._spread(names, read)

    def _spread(self, names: tuple[str, ...], read: Reader) -> Reader:
        def spread(value: bytes) -> tuple[Any, ...]:
            found = dict(zip(names, read(value), strict=True))
            return tuple(found.get(name) for name in self._columns)

        return spread


class EntryKeyReaders:
    """Gives the reader of message keys for each effective entry: by its own ``source.key``."""

    def __init__(self, subject: Subject, schema: pa.Schema) -> None:
        self._entries = subject.ledger.effective
        self._subject = subject
        self._schema = schema
        self._made: dict[tuple[str | None, str], Reader | None] = {}

    def of(self, entry: int) -> Reader | None:
        """None where null values had no meaning. Raises Unreadable for an unknown form, and where
        the entry names a decoder that is not known.
        """
        its = self._entries[entry]
        name = its.config.get("key", self._subject.pipeline.source.key)
        key = name, _text(its.decoder)
        if key not in self._made:
            make = self._subject.key_reader
            self._made[key] = _known(its, lambda: make(self._schema, name, its.decoder))
        return self._made[key]


def _text(decoder: Decoder) -> str:
    """The decoder of an entry as text, by which it can be compared."""
    return json.dumps(decoder, sort_keys=True) if decoder else ""


def _known(entry: LedgerEntry, make: Callable[[], Made]) -> Made:
    """What ``make`` makes. Raises Unreadable where it does not know the decoder of the entry."""
    try:
        return make()
    except UnknownDecoder as unknown:
        line = f"entry {entry.sequence} was decoded by {unknown}, which this version does not know"
        raise Unreadable(f"{line}: upgrade rivermouth") from unknown
