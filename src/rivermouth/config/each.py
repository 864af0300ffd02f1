"""Records that hold an array of rows: ``each: items``, or ``each: $`` where they are one.

The rows are made as ``select`` makes them: the array is read as the column ``ROWS``, and ``inline``
makes a row of each element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rivermouth.config.columns import Column
from rivermouth.config.envelope import Envelope
from rivermouth.config.formats import FORMATS
from rivermouth.config.paths import ROOT, From, Steps, reading, steps_of
from rivermouth.config.problems import Fault, Kind, Refused
from rivermouth.config.settings import Written
from rivermouth.config.transform import modes_of_own_code

ROWS = "_rm_each"
"""The column of the array, which no table has."""
WHOLE = "$"
"""The path of a record that is an array."""


def _read(value: object) -> str:
    if not isinstance(value, str):
        message = "{path} must be text like items or $, not {value}"
        raise Refused(Fault(Kind.WRONG_TYPE, message))
    steps_of(value)
    return value


Each = Annotated[
    Annotated[str, BeforeValidator(_read), WithJsonSchema({"type": "string"})] | None,
    Field(
        description="The path of an array in each record, whose elements become rows; `$`: the"
        " record is one. See [formats](records.md#an-array-of-rows).",
        examples=["items", "$"],
    ),
    Written(word="text"),
]


@dataclass(frozen=True)
class Part:
    """Columns with their paths: those of the element, or those of the record beside the array."""

    columns: tuple[Column, ...]
    fields: tuple[From, ...]


def parted(columns: Sequence[Column], fields: Sequence[From]) -> tuple[Part, Part]:
    """The columns of the element, and those of the record: their paths begin with ``ROOT``."""
    above = {e.column for e in fields if any(t.startswith(ROOT) for t in e.texts)}
    inside, beside = (
        Part(
            tuple(e for e in columns if (e.name in above) == is_above),
            tuple(e for e in fields if (e.column in above) == is_above),
        )
        for is_above in (False, True)
    )
    return inside, beside


def records(
    each: str, columns: Sequence[Column], fields: Sequence[From]
) -> tuple[tuple[Column, ...], tuple[From, ...], str]:
    """The columns of records, where these stand, and what ``select`` makes the rows by."""
    inside, beside = parted(columns, fields)
    paths = {e.column: e.paths for e in inside.fields if e.texts}
    element = reading(inside.columns, inside.fields)
    row = ", ".join(f"{_quoted(e.name)}: {e.type}" for e in element)
    made = ", ".join(
        f"{_at(paths.get(e.name, ((e.name,),)))} AS {_quoted(e.name)}" for e in inside.columns
    )
    rows = f"inline(transform({ROWS}, {_ELEMENT} -> struct({made})))"
    return (
        (*beside.columns, Column(ROWS, f"ARRAY<STRUCT<{row}>>")),
        (*beside.fields, From(ROWS, (each,))),
        ", ".join((*(_quoted(e.name) for e in beside.columns), rows)),
    )


_ELEMENT = "_rm_element"


def _at(paths: Sequence[Steps]) -> str:
    """What stands at the first of these paths in an element, in SQL."""
    found = [_below(each) for each in paths]
    return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _below(steps: Steps) -> str:
    text = _ELEMENT
    for each in steps:
        text = f"get({text}, {each})" if isinstance(each, int) else f"{text}.{_quoted(each)}"
    return text


def _quoted(name: str) -> str:
    return f"`{name}`"


def has_elements(
    each: str | None,
    format_: str,
    envelope: Envelope | None,
    mode: str,
    transform: str | None,
    select: str | None,
) -> Iterator[Fault]:
    """``each`` needs fields with names, and makes the rows alone."""
    if each is None:
        return
    message, fix = "", "remove it"
    if "from" not in FORMATS.by_name[format_].settings:
        message = f"{{path}} has no meaning for format {format_}, whose fields have no names"
    elif each == WHOLE and format_ != "json":
        message = f"{{path}} is {{value}}, but a record of format {format_} is no array"
        fix = "write the path of an array in it"
    elif envelope is not None:
        message = "{path} does not go with envelope: an event is about one row"
    elif transform is not None or select is not None:
        name = "select" if transform is None else "transform"
        message = f"{{path}} and {name} are both given"
        fix = f"remove one of them: {name} can make rows of an array, too"
    elif mode not in modes_of_own_code():
        message = f"{{path}} does not go with mode: {mode}, which could not be verified"
        fix = f"write mode: {' or '.join(modes_of_own_code())}"
    if message:
        yield Fault(Kind.TRANSFORM, message, path=("each",), fix=fix, at_key=True)


def elements_have_fields(
    each: str | None, columns: tuple[Column, ...], fields: tuple[From, ...]
) -> Iterator[Fault]:
    """The columns stand in the elements, or beside the array."""
    if each is None:
        return
    inside, beside = parted(columns, fields)
    for its in beside.fields:
        path = ("columns", its.column, "from")
        if not all(e.startswith(ROOT) for e in its.texts):
            message = "{path} has paths in the record and in the element of the array"
            fix = f"begin all of them with {ROOT}, or none"
            yield Fault(Kind.BAD_VALUE, message, path=path, fix=fix)
        if each == WHOLE:
            message = "{path} stands beside the array, but the record is the array"
            yield Fault(Kind.BAD_VALUE, message, path=path, fix="remove it")
    for its in inside.fields:
        if its.wire:
            message = "{path} has no meaning inside of an array"
            fix = "read the value as it is written, and make the column of it by a view"
            yield Fault(Kind.BAD_VALUE, message, path=("columns", its.column, "as"), fix=fix)
    for column in inside.columns:
        if column.required:
            message = f"{{path}} says NOT NULL of {column.name}, which is not checked in an array"
            yield Fault(Kind.BAD_SCHEMA, message, path=("schema",), fix="remove it")
    if not inside.columns:
        message = "{path} is given, but all columns stand in the record"
        yield Fault(Kind.BAD_VALUE, message, path=("each",), fix="remove it", at_key=True)
    for part in (inside, beside):
        try:
            reading(part.columns, part.fields)
        except Refused as refused:
            yield from refused.faults


def of_table(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of the table: what is NOT NULL is checked of records."""
    return tuple(replace(e, required=False) for e in columns)
