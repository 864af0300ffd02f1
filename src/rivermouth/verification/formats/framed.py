"""Values with the number of their schema ahead: a zero byte, and four bytes, the highest first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from rivermouth.verification.formats.reader import CannotTell, Reader, Undecodable

_HEADER = 5
Schemas = Callable[[int], str | None]
"""The text of a schema by its number; None: the registry has none. It raises CannotTell."""


def without_header(read: Reader) -> Reader:
    """Reads what follows the number, whatever that is."""

    def read_rest(value: bytes) -> tuple[Any, ...]:
        rest = _split(value)[1]
        if not rest:
            raise Undecodable("nothing follows after the number of the schema")
        return read(rest)

    return read_rest


def by_number(make: Callable[[str], Reader], schemas: Schemas) -> Reader:
    """Reads what follows by the schema that the number names; ``make`` makes a reader for one.

    Where the registry has none the writer refused the record. But it may have known one that was
    deleted since: of such a record nothing can be told.
    """
    made = cache(make)
    known = cache(schemas)

    def read(value: bytes) -> tuple[Any, ...]:
        number, rest = _split(value)
        text = known(number)
        if text is None:
            raise CannotTell(f"the registry does not know the schema {number}")
        return made(text)(rest)

    return read


def _split(value: bytes) -> tuple[int, bytes]:
    if len(value) < _HEADER or value[0]:
        raise Undecodable("it does not begin with a zero byte and the number of a schema")
    return int.from_bytes(value[1:_HEADER], "big"), value[_HEADER:]


def unknown_here(number: int) -> str | None:
    """Where no registry is configured."""
    raise CannotTell(f"no registry is configured that has the schema {number}")
