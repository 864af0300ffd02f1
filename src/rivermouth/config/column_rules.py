"""Rules of settings that name columns of ``schema``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from rivermouth.config.columns import Column
from rivermouth.config.problems import Fault, Kind, Path, closest, listed
from rivermouth.config.totals import key_parts

Names = tuple[str, ...]
Columns = tuple[Column, ...]
T = TypeVar("T")
SentRule = Callable[[Columns, Columns | None, T], Iterator[Fault]]


def are_columns(setting: str) -> Callable[[Columns, Names], Iterator[Fault]]:
    """The rule that a list of ``target`` names columns of primitive types."""

    def faults(schema: Columns, names: Names) -> Iterator[Fault]:
        columns = {column.name: column for column in schema}
        # Only a key of totals may be a window of a column.
        plain = names if setting != "keys" else [each.column for each in key_parts(names)]
        for index, name in enumerate(plain):
            fault = _column_fault(setting, name, columns)
            if fault is not None:
                yield replace(fault, path=("target", setting, index))

    return faults


def is_one_of(setting: str, *kinds: str) -> Callable[[Columns, str | None], Iterator[Fault]]:
    """The rule that a setting of ``target`` names a column of one of these types."""

    def faults(schema: Columns, name: str | None) -> Iterator[Fault]:
        if name is None:
            return
        columns = {column.name: column for column in schema}
        fault = _column_fault(setting, name, columns)
        if fault is None and columns[name].kind not in kinds:
            message = f"{{path}} names {{value}}, which is {article(columns[name].kind)}"
            fault = Fault(Kind.COLUMN_TYPE, message, fix=f"it must be {' or '.join(kinds)}")
        if fault is not None:
            yield replace(fault, path=("target", setting))

    return faults


def of_sent_rows(rule: Callable[[Columns, T], Iterator[Fault]]) -> SentRule[T]:
    """The rule about columns of the rows that are sent: of ``target.schema``, where it is given."""

    def faults(schema: Columns, made: Columns | None, value: T) -> Iterator[Fault]:
        if made is None:
            yield from rule(schema, value)
            return
        for each in rule(made, value):
            message = each.message.replace("a column of schema", "a column of target.schema")
            quotes: Path = ("target", "schema") if each.quotes else ()
            yield replace(each, message=message, quotes=quotes)

    return faults


def _column_fault(setting: str, name: str, columns: Mapping[str, Column]) -> Fault | None:
    column = columns.get(name)
    if column is None:
        suggestion = closest(name, columns)
        fix = "" if suggestion else f"columns: {listed(columns)}"
        message = "{path} names {value}, which is not a column of schema"
        fault = Fault(Kind.NO_COLUMN, message, suggestion=suggestion, fix=fix)
        return replace(fault, quotes=("schema",))
    message = f"{{path}} names {{value}}, which is {article(column.kind)}"
    if not column.primitive:
        fix = "use a column of a primitive type"
        return Fault(Kind.COLUMN_TYPE, message, fix=fix)
    if column.floating and setting == "keys":
        fix = "floating-point numbers cannot be compared exactly: use DECIMAL or BIGINT"
        return Fault(Kind.COLUMN_TYPE, message, fix=fix)
    return None


def article(kind: str) -> str:
    """The name of a type or mode with its article."""
    return f"{'an' if kind[0].upper() in 'AEIOU' else 'a'} {kind}"
