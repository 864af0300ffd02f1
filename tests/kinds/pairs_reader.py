"""The checker's own reading of records like ``id=7;status=paid``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.json_scalars import settings_of
from rivermouth.verification.formats.keys import from_text
from rivermouth.verification.formats.reader import NOT_VERIFIABLE, Reader, Undecodable


def unsure(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """The same, but of a value that does not fit its column it can tell nothing."""
    reads = [reader(schema, [name], decoder) for name in columns]

    def read(value: bytes) -> tuple[Any, ...]:
        return tuple(_or_unknown(each, value) for each in reads)

    return read


def _or_unknown(read: Reader, value: bytes) -> Any:
    try:
        return read(value)[0]
    except Undecodable:
        return NOT_VERIFIABLE


def reader(schema: pa.Schema, columns: Sequence[str], decoder: Mapping[str, Any]) -> Reader:
    """A reader of ``columns``; see ``Reader``."""
    settings = settings_of(decoder)
    casts = [(name, from_text(schema.field(name).type, settings)) for name in columns]

    def read(value: bytes) -> tuple[Any, ...]:
        try:
            pairs = [each.partition("=") for each in value.decode().split(";")]
        except UnicodeDecodeError as fault:
            raise Undecodable(str(fault)) from fault
        if not all(sign for _, sign, _ in pairs):
            raise Undecodable("text without =")
        texts = {name: text for name, _, text in reversed(pairs)}
        return tuple(cast(texts[name]) if name in texts else None for name, cast in casts)

    return read
