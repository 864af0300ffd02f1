"""Records like ``id=7;status=paid``: text in UTF-8, the first pair of a name counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded
from rivermouth.formats.strict_json.types import JsonSettings, schema_of
from rivermouth.formats.text import column_of


@dataclass(frozen=True)
class Pairs:
    """Decodes such records for the columns of the schema."""

    schema: pa.Schema

    def decode(self, values: pa.Array) -> Decoded:
        """RM603 for text without ``=`` or with a value that does not fit."""
        given = values.to_pylist()
        pairs = [_pairs(each) if each else None for each in given]
        both = zip(pairs, given, strict=True)
        reasons = ["no pairs" if pair is None and value else None for pair, value in both]
        columns = []
        for field in self.schema:
            texts = pa.array([None if p is None else p.get(field.name) for p in pairs], pa.string())
            column, unfit = column_of(texts, field.type, JsonSettings())
            columns.append(column)
            for at, why in unfit.items():
                reasons[at] = why
        good = [p is not None and r is None for p, r in zip(pairs, reasons, strict=True)]
        mask = pa.array([not each for each in good])
        rows = pa.StructArray.from_arrays(columns, fields=list(self.schema), mask=mask)
        return Decoded.of(rows, pa.array(reasons, pa.string()), "RM603")


def _pairs(value: bytes) -> dict[str, str] | None:
    try:
        parts = [each.partition("=") for each in value.decode().split(";")]
    except UnicodeDecodeError:
        return None
    if not all(sign for _, sign, _ in parts):
        return None
    return {name: text for name, _, text in reversed(parts)}


def decoder(columns: Sequence[Column], _: Mapping[str, Any]) -> Pairs:
    """What decodes values."""
    return Pairs(schema_of(columns))
