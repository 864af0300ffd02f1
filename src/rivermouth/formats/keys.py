"""Message keys that are one plain value. They take no settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from rivermouth.config import Column


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
