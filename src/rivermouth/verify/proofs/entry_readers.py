"""Record values, read with the columns that the driver of each entry decoded them with.

A column that was added later is null in the rows from before: those records were decoded without
it, whatever they hold under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from rivermouth.verify.formats.reader import Reader
from rivermouth.verify.subject import Subject


class EntryReaders:
    """Gives the reader of ``columns`` for each effective entry, by its index."""

    def __init__(self, subject: Subject, schema: pa.Schema, columns: Sequence[str]) -> None:
        self._entries = subject.ledger.effective
        self._columns = tuple(columns)
        self._known: dict[int, Reader] = {}

        @cache
        def made(names: tuple[str, ...]) -> Reader:
            read = subject.reader(schema, names)
            return read if names == self._columns else self._spread(names, read)

        self._made = made

    def of(self, entry: int) -> Reader:
        """Reads all columns; those that the entry did not know are null.

        An entry of format 1 does not tell its columns: then all are read.
        """
        if entry not in self._known:
            told = self._entries[entry].columns
            names = (each for each in self._columns if told is None or each in told)
            self._known[entry] = self._made(tuple(names))
        return self._known[entry]

    def _spread(self, names: tuple[str, ...], read: Reader) -> Reader:
        def spread(value: bytes) -> tuple[Any, ...]:
            found = dict(zip(names, read(value), strict=True))
            return tuple(found.get(name) for name in self._columns)

        return spread


class EntryKeyReaders:
    """Gives the reader of message keys for each effective entry: by its own ``source.key``."""

    def __init__(self, subject: Subject, schema: pa.Schema) -> None:
        self._entries = subject.ledger.effective
        self._configured = subject.pipeline.source.key
        self._made = cache(lambda name: subject.key_reader(schema, name))

    def of(self, entry: int) -> Reader | None:
        """None where null values had no meaning. Raises Unreadable for an unknown form."""
        return self._made(self._entries[entry].config.get("key", self._configured))
