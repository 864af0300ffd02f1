"""Values that are one plain value: ``raw`` bytes, and ``string``, text of one column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded
from rivermouth.formats.strict_json.types import JsonSettings, schema_of, settings_of
from rivermouth.formats.text import bad, column_of, text_of


@dataclass(frozen=True)
class Raw:
    """The bytes themselves are the only column, of BINARY."""

    name: str

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        none = pa.nulls(len(values), pa.string())
        given = values.cast(pa.binary())
        rows = pa.StructArray.from_arrays([given], [self.name], mask=values.is_null())
        return Decoded(rows, none, none)


@dataclass(frozen=True)
class Text:
    """The text is the only column."""

    field: pa.Field
    settings: JsonSettings

    def decode(self, values: pa.Array) -> Decoded:
        """See ``formats.arrow.InArrow``."""
        texts, faults = text_of(values)
        column, unfit = column_of(texts, self.field.type, self.settings)
        rows = pa.StructArray.from_arrays([column], fields=[self.field], mask=texts.is_null())
        none = pa.nulls(len(values), pa.string())
        return Decoded(rows, none, none).with_faults(bad(values, {**unfit, **faults}))


def raw(columns: Sequence[Column], _: Mapping[str, Any]) -> Raw:
    """What decodes values of ``raw``."""
    [only] = columns
    return Raw(only.name)


def string(columns: Sequence[Column], settings: Mapping[str, Any]) -> Text:
    """What decodes values of ``string``."""
    return Text(schema_of(columns).field(0), settings_of(settings))
