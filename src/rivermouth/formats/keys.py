"""Message keys that are one plain value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded, InArrow
from rivermouth.formats.strict_json.types import JsonSettings, schema_of, settings_of
from rivermouth.formats.text import column_of, text_of


@dataclass(frozen=True)
class Text:
    """Decodes keys that are text, for the column ``name``; null where they do not fit."""

    name: str
    kind: pa.DataType
    settings: JsonSettings

    def decode(self, values: pa.Array) -> Decoded:
        """See ``InArrow.decode``. STRING and BINARY take any bytes."""
        if pa.types.is_binary(self.kind):
            return _only(self.name, values.cast(pa.binary()))
        texts = values.cast(pa.string(), safe=False)
        if pa.types.is_string(self.kind):
            return _only(self.name, texts)
        found, _ = column_of(text_of(values)[0], self.kind, self.settings)
        return _only(self.name, found)


@dataclass(frozen=True)
class Number:
    """Decodes keys of eight bytes for the column ``name``; null where they do not fit."""

    name: str
    kind: pa.DataType

    def decode(self, values: pa.Array) -> Decoded:
        """See ``InArrow.decode``. They are big-endian, two's complement (LongSerializer)."""
        given = [
            each if each is not None and len(each) == 8 else None for each in values.to_pylist()
        ]
        numbers = np.frombuffer(b"".join(each or bytes(8) for each in given), ">i8").astype(
            np.int64
        )
        least = np.iinfo(self.kind.to_pandas_dtype())
        none = np.array([each is None for each in given], np.bool_)
        none |= (numbers < least.min) | (numbers > least.max)
        return _only(self.name, pa.array(np.where(none, 0, numbers), mask=none).cast(self.kind))


def _only(name: str, values: pa.Array) -> Decoded:
    rows, none = pa.StructArray.from_arrays([values], [name]), pa.nulls(len(values), pa.string())
    return Decoded(rows, none, none)


def string(columns: Sequence[Column], settings: Mapping[str, Any]) -> InArrow:
    """The only key column from a key that is text."""
    [only] = columns
    return Text(only.name, schema_of(columns).field(0).type, settings_of(settings))


def long(columns: Sequence[Column], _: Mapping[str, Any]) -> InArrow:
    """The only key column from a key of eight bytes."""
    [only] = columns
    return Number(only.name, schema_of(columns).field(0).type)
