"""Columns from fields that have other names, or stand deeper in a record; and arrays whose elements
became rows. Own code made these, so they are not compared. But what is read tells which records are
bad.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json_document import pairs_of, text_of
from rivermouth.verification.formats.reader import FIELDS, Reader, Undecodable

Steps = Sequence[str | int]
Make = Callable[[pa.Schema, Sequence[str], dict[str, Any]], Reader]
WHOLE = "$"
"""The path of a record that is an array."""
_STEP = re.compile(r"\[(\d+)\]|\.?(?:`([^`]+)`|([^.\[\]`]+))")


def projected(
    make: Make,
    schema: pa.Schema,
    columns: Sequence[str],
    paths: Mapping[str, Sequence[str]],
    settings: dict[str, Any],
) -> Reader:
    """Reads the fields that give the columns, and takes these out of them.

    ``paths`` are those of columns; the first that has a value counts. All others are the fields of
    their names.
    """
    given = {name: [steps(each) for each in paths[name]] for name in paths}
    wanted = [given.get(each, [[each]]) for each in columns]
    kinds: dict[str, Any] = {}
    for name, its in zip(columns, wanted, strict=True):
        for each in its:
            note(kinds, each, schema.field(name).type)
    fields = [
        str(each[0]) for name in settings.get(FIELDS, ()) for each in given.get(name, [[name]])
    ]
    inner = make(
        pa.schema([(name, type_of(each)) for name, each in kinds.items()]),
        [*kinds],
        {**settings, FIELDS: fields},
    )

    def read(value: bytes) -> tuple[Any, ...]:
        record = dict(zip(kinds, inner(value), strict=True))
        return tuple(first(record, each) for each in wanted)

    return read


def steps(text: str) -> Steps:
    """The names and indices of a path."""
    found = (match.groups() for match in _STEP.finditer(text.removeprefix("$.")))
    return [int(at) if at else quoted or plain for at, quoted, plain in found]


def note(kinds: dict[Any, Any], path: Steps, kind: pa.DataType) -> None:
    """Note the type at a path, in dictionaries by names; the key None is an element of an array."""
    *above, last = [None if isinstance(each, int) else each for each in path]
    for each in above:
        kinds = kinds.setdefault(each, {})
    kinds[last] = kind


def type_of(noted: Any) -> pa.DataType:
    """The type of what was noted."""
    if not isinstance(noted, dict):
        return noted
    if None in noted:
        return pa.list_(type_of(noted[None]))
    return pa.struct([(name, type_of(each)) for name, each in noted.items()])


def first(record: Mapping[str, Any], paths: Sequence[Steps]) -> Any:
    """What stands at the first path that has a value."""
    values = (at(record, each) for each in paths)
    return next((each for each in values if each is not None), None)


def at(value: Any, path: Steps) -> Any:
    """What stands at a path; None: nothing does."""
    for each in path:
        if value is None:
            return None
        if isinstance(each, int):
            value = value[each] if each < len(value) else None
        else:
            value = value.get(each)
    return value


def as_field(read: Reader) -> Reader:
    """Reads JSON values as the field ``$`` of an object."""

    def read_field(value: bytes) -> tuple[Any, ...]:
        whole = b'{"$":%b}' % value
        [(_, array), *more] = pairs_of(text_of(whole))
        if more or array is None:
            raise Undecodable("it is not one array")
        return read(whole)

    return read_field


def with_elements(read: Reader) -> Reader:
    """Refuses records in whose array, the last column, an element has no field of the columns."""

    def read_with(value: bytes) -> tuple[Any, ...]:
        row = read(value)
        for each in row[-1] or ():
            if each is None or all(field is None for field in each.values()):
                raise Undecodable("an element has no field of the columns")
        return row

    return read_with
