"""Columns from fields that have other names, or stand deeper in a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.reader import FIELDS, Reader

Make = Callable[[pa.Schema, Sequence[str], dict[str, Any]], Reader]
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
    steps = {name: [_steps(each) for each in paths[name]] for name in paths}
    wanted = [steps.get(each, [[each]]) for each in columns]
    kinds: dict[str, Any] = {}
    for name, its in zip(columns, wanted, strict=True):
        for each in its:
            _note(kinds, each, schema.field(name).type)
    fields = [
        str(each[0]) for name in settings.get(FIELDS, ()) for each in steps.get(name, [[name]])
    ]
    inner = make(
        pa.schema([(name, _kind(each)) for name, each in kinds.items()]),
        [*kinds],
        {**settings, FIELDS: fields},
    )

    def read(value: bytes) -> tuple[Any, ...]:
        record = dict(zip(kinds, inner(value), strict=True))
        return tuple(_first(record, each) for each in wanted)

    return read


def _steps(text: str) -> list[str | int]:
    found = (match.groups() for match in _STEP.finditer(text))
    return [int(at) if at else quoted or plain for at, quoted, plain in found]


def _note(kinds: dict[Any, Any], steps: Sequence[str | int], kind: pa.DataType) -> None:
    """Note the type at a path, in dictionaries by names; the key None is an element of an array."""
    *above, last = [None if isinstance(each, int) else each for each in steps]
    for each in above:
        kinds = kinds.setdefault(each, {})
    kinds[last] = kind


def _kind(noted: Any) -> pa.DataType:
    if not isinstance(noted, dict):
        return noted
    if None in noted:
        return pa.list_(_kind(noted[None]))
    return pa.struct([(name, _kind(each)) for name, each in noted.items()])


def _first(record: Mapping[str, Any], paths: Sequence[Sequence[str | int]]) -> Any:
    values = (_at(record, each) for each in paths)
    return next((each for each in values if each is not None), None)


def _at(value: Any, steps: Sequence[str | int]) -> Any:
    for each in steps:
        if value is None:
            return None
        if isinstance(each, int):
            value = value[each] if each < len(value) else None
        else:
            value = value.get(each)
    return value
