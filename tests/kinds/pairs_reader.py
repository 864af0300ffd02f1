"""The checker's own reading of records like ``id=7;status=paid``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.verification.formats.keys import from_text
from rivermouth.verification.formats.reader import Reader, Undecodable


def reader(schema: pa.Schema, columns: Sequence[str], _: Mapping[str, Any]) -> Reader:
    """A reader of ``columns``; see ``Reader``."""
    casts = [(name, from_text(schema.field(name).type)) for name in columns]

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
