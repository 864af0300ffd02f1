"""Message keys that are one plain value. They take no settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from rivermouth.config import Column
from rivermouth.formats.arrow import Decoded, InArrow
from rivermouth.formats.strict_json.types import schema_of


def string(columns: Sequence[Column], _: Mapping[str, Any]) -> SparkColumn:
    """The only key column from a key that is text; its field is null where that does not fit."""
    [only] = columns
    return F.struct(F.col("key").cast("string").try_cast(only.type).alias(only.name))


def long(columns: Sequence[Column], _: Mapping[str, Any]) -> SparkColumn:
    """The only key column from a key as Kafka's LongSerializer writes it: eight bytes, big-endian,
    two's complement.
    """
    [only] = columns
    key = F.col("key")
    # conv to base -10 makes the number signed.
    number = F.when(F.length(key) == 8, F.conv(F.hex(key), 16, -10).cast("bigint"))
    return F.struct(number.try_cast(only.type).alias(only.name))


@dataclass(frozen=True)
class Text:
    """Decodes keys that are text, for the column ``name`` of text."""

    name: str

    def decode(self, values: pa.Array) -> Decoded:
        """See ``InArrow.decode``. Spark's STRING may hold any bytes."""
        return _only(self.name, values.cast(pa.string(), safe=False))


@dataclass(frozen=True)
class Number:
    """Decodes keys of eight bytes for the column ``name``; null where they do not fit."""

    name: str
    kind: pa.DataType

    def decode(self, values: pa.Array) -> Decoded:
        """See ``InArrow.decode``."""
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
    rows = pa.StructArray.from_arrays([values], [name])
    return Decoded(rows, pa.nulls(len(values), pa.string()))


def string_in_task(columns: Sequence[Column], _: Mapping[str, Any]) -> InArrow | None:
    """The same in a task; None for a column of another type, to which Spark casts the text."""
    [only] = columns
    return Text(only.name) if only.kind == "STRING" else None


def long_in_task(columns: Sequence[Column], _: Mapping[str, Any]) -> InArrow:
    """The same in a task."""
    [only] = columns
    return Number(only.name, schema_of(columns).field(0).type)
