"""Version 1 of the format ``json``: Spark's ``from_json`` decodes. Ledgers name it, so ``verify``
still reads what it wrote; no pipeline is decoded so any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from rivermouth.config import Column
from rivermouth.config.registry import FORMATS, KeyForm
from rivermouth.formats.decoder import ValueDecoder

_CORRUPT = "_rm_corrupt"


def value(columns: Sequence[Column]) -> ValueDecoder:
    """What decodes values; RM603 for what is not one JSON object that fits the columns."""
    return ValueDecoder(
        parsed=from_json(F.col("value"), columns),
        field=lambda parsed, name: parsed.getField(name),
        fault=lambda parsed: F.when(
            parsed.isNull() | parsed.getField(_CORRUPT).isNotNull(), F.lit("RM603")
        ),
    )


def key(columns: Sequence[Column]) -> SparkColumn:
    """The key columns from a message key that is a JSON object; null where it is none."""
    parsed = from_json(F.col("key"), columns)
    whole = F.struct(*(parsed.getField(each.name).alias(each.name) for each in columns))
    return F.when(parsed.getField(_CORRUPT).isNull(), whole)


def from_json(value: SparkColumn, columns: Sequence[Column]) -> SparkColumn:
    """A struct of ``columns`` and the text of a corrupt record; null where nothing is there."""
    ddl = ", ".join(f"`{each.name}` {each.type}" for each in columns)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return F.from_json(value.cast("string"), f"{ddl}, {_CORRUPT} STRING", options)


_READER = FORMATS.by_name["json"].earlier[1]
FIRST_JSON = replace(
    FORMATS.by_name["json"],
    decoder="tests.kinds.first_json:value",
    reader=_READER,
    key=KeyForm(name="json", decoder="tests.kinds.first_json:key", reader=_READER),
    in_task=None,
    version=1,
    earlier={},
    settings=frozenset(),
)
