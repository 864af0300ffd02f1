"""Records like ``id=7;status=paid``: text in UTF-8, the first pair of a name counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from rivermouth.config import Column
from rivermouth.formats.decoder import ValueDecoder


def value(columns: Sequence[Column], _: Mapping[str, Any]) -> ValueDecoder:
    """What decodes values; RM603 for text without ``=`` or with a value that does not fit."""
    types = {each.name: each.type for each in columns}

    def field(pairs: SparkColumn, name: str) -> SparkColumn:
        return _text(pairs, name).try_cast(types[name])

    def fault(pairs: SparkColumn) -> SparkColumn:
        unfit = (_text(pairs, each).isNotNull() & field(pairs, each).isNull() for each in types)
        no_pair = F.exists(pairs, lambda pair: ~pair.contains("="))
        return F.when(reduce(or_, unfit, pairs.isNull() | no_pair), F.lit("RM603"))

    text = F.try_validate_utf8(F.col("value").cast("string"))
    return ValueDecoder(parsed=F.split(text, ";"), field=field, fault=fault)


def _text(pairs: SparkColumn, name: str) -> SparkColumn:
    first = F.get(F.filter(pairs, lambda pair: pair.startswith(f"{name}=")), F.lit(0))
    return F.substring(first, len(name) + 2, 2**31 - 1)
