"""What a format gives the checker: a reader of record values or of message keys.

A format names a function ``(schema, columns, settings) -> Reader`` in ``config.formats``. The
schema is that of the table, and has all of the columns; the settings are those of the decoder, as
an entry names them. It raises Undecodable for a column whose type the format cannot hold, and
UnknownDecoder for settings that are not known.

A reader is written from the description of the format and shares nothing with the decoder of the
writer. It is asked about every record: one in quarantine must be Undecodable, every other one must
not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

FIELDS = "fields"
"""Among the settings of a reader of record values: the names of all columns that the entry's driver
decoded. A record that has none of these fields is bad, unless ``on_empty`` says otherwise.
"""
GONE = "\0gone"
"""In place of a column: whether the record is an event that deletes a row. Null for all others."""
_SHOWN = 60
"""Characters of a text in a message."""


class Undecodable(ValueError):
    """The bytes do not give the wanted columns: the writer refuses them too. The text says why."""


class NoRow(Undecodable):
    """The record is no bad one, and it leaves no row."""


def short(value: object) -> str:
    """A value as the text of ``Undecodable`` names it: short, however long or deep it is.

    The ``repr`` of objects within objects has an end of its own: Python's limit of recursion.
    """
    if isinstance(value, (tuple, list)):
        return "an object" if isinstance(value, tuple) else "an array"
    return repr(value[:_SHOWN] if isinstance(value, str) else value)


class CannotTell(Exception):
    """This checker cannot tell what the writer makes of the bytes; the text says why."""


class UnknownDecoder(Exception):
    """An entry names settings of its decoder that this checker does not know; the text says which.

    A newer version of rivermouth wrote it.
    """


class Reader(Protocol):
    """Reads the wanted columns out of the bytes of one record value or one message key."""

    def __call__(self, value: bytes, /) -> tuple[Any, ...]:
        """The canonical values of the wanted columns, in order; None for null and for absent.

        Canonical values, by the column's type in Arrow: whole numbers as int; FLOAT (rounded to
        single precision) and DOUBLE as float; DECIMAL as Decimal with the scale of the column;
        STRING as str, BINARY as bytes, BOOLEAN as bool; DATE as days and TIMESTAMP as
        microseconds since 1970; STRUCT as dict, ARRAY as list, MAP as list of pairs.
        ``NOT_VERIFIABLE`` stands for a column whose value this reader cannot tell, never for a
        part of one; whoever compares counts it. A record value is never empty here, a message
        key may be. Raises Undecodable, and CannotTell where it can tell nothing of the record.
        """


class _NotVerifiable:
    """Equal to every value, so that only the columns that can be told are compared."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "NOT_VERIFIABLE"

    def __reduce__(self) -> str:
        return "NOT_VERIFIABLE"  # it is the same one after it was on disk


@dataclass(frozen=True)
class Untold:
    """Stands for a value that an event does not tell, since it stays as it is: ``instead`` is what
    the event has in its place.
    """

    instead: Any


NOT_VERIFIABLE = _NotVerifiable()
"""Stands for a column that the checker cannot tell: it is equal to every value."""
