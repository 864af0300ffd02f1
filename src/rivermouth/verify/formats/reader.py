"""What a format gives the checker: a reader of record values or of message keys.

A format names a function ``(schema, columns) -> Reader`` in ``registry.formats``. It is written
from the description of the format and shares nothing with the decoder of the writer. It is only
asked about records that are *not* in quarantine, so it need not find every fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa


class Undecodable(ValueError):
    """The bytes do not give the wanted columns, or this checker cannot tell; the text says why."""


class Reader(Protocol):
    """Reads the wanted columns out of the bytes of one record value or one message key."""

    def __call__(self, value: bytes, /) -> tuple[Any, ...]:
        """The canonical values of the wanted columns, in order; None for null and for absent.

        Canonical values, by the column's type in Arrow: whole numbers as int; FLOAT (rounded to
        single precision) and DOUBLE as float; DECIMAL as Decimal with the scale of the column;
        STRING as str, BINARY as bytes, BOOLEAN as bool; DATE as days and TIMESTAMP as
        microseconds since 1970; STRUCT as dict, ARRAY as list, MAP as list of pairs.
        ``NOT_VERIFIABLE`` stands for a value that this reader cannot tell. A record value is
        never empty here, a message key may be. Raises Undecodable.
        """


class MakeReader(Protocol):
    """What ``Format.reader`` and ``KeyForm.reader`` of the registry name."""

    def __call__(self, schema: pa.Schema, columns: Sequence[str]) -> Reader:
        """A reader of ``columns``; ``schema`` is that of the table, and has all of them.

        Raises Undecodable for a column whose type the format cannot hold.
        """


class _NotVerifiable:
    """Equal to every value."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "NOT_VERIFIABLE"


NOT_VERIFIABLE = _NotVerifiable()
"""Stands for a value that the checker cannot tell: it is equal to every value."""
