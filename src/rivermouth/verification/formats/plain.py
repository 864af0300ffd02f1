"""Values that are one plain value, and lines of CSV."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json_scalars import settings_of
from rivermouth.verification.formats.keys import from_text
from rivermouth.verification.formats.reader import Reader, Undecodable

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def raw(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """Gives the bytes for each wanted column; there is one."""
    return lambda value: (value,) * len(columns)


def string(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """Reads the text for the only column."""
    convert = [from_text(schema.field(each).type, settings_of(decoder)) for each in columns]
    return lambda value: tuple(each(_text(value)) for each in convert)


def csv(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """Reads the wanted columns of a line; all of them stand in it, in the order of the entry."""
    given = dict(decoder)
    options = given.pop("csv", {})
    settings, names = settings_of(given), list(given["fields"])
    delimiter, null = options.get("delimiter", ","), options.get("null_value", "")
    convert = {each: from_text(schema.field(each).type, settings) for each in columns}

    def read(value: bytes) -> tuple[Any, ...]:
        fields = _fields(_text(value).rstrip("\r\n"), delimiter, null)
        if len(fields) != len(names):
            raise Undecodable(f"{len(fields)} fields, where {len(names)} are expected")
        by_name = dict(zip(names, fields, strict=True))
        values = ((each, by_name[name]) for name, each in convert.items())
        return tuple(None if text is None else each(text) for each, text in values)

    return read


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as fault:
        raise Undecodable(f"not UTF-8: {fault}") from fault


def _fields(line: str, delimiter: str, null: str) -> list[str | None]:
    plain = re.compile(rf'[^"\r\n{re.escape(delimiter)}]*')
    fields: list[str | None] = []
    at = 0
    while True:
        quoted = _QUOTED.match(line, at)
        found = quoted or plain.match(line, at)
        assert found is not None  # the plain one may be empty
        text = quoted[1].replace('""', '"') if quoted else found[0]
        fields.append(None if not quoted and text == null else text)
        at = found.end()
        if at == len(line):
            return fields
        if not line.startswith(delimiter, at):
            raise Undecodable(f"not a line of CSV at its character {at + 1}")
        at += len(delimiter)
