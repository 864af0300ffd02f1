"""What a source may say of binary formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rivermouth.config import Column
from rivermouth.formats.strict_json.types import schema_of


@dataclass(frozen=True)
class Settings:
    """``unit``: what a plain number in a TIMESTAMP counts; None refuses it. ``cut``: what is less
    than a microsecond is cut. ``any_case``: names are compared without the case of letters.
    ``empty``: a record without a field of the columns is a row of nulls.
    """

    unit: str | None = None
    cut: bool = False
    any_case: bool = False
    empty: bool = False

    def same(self, name: str) -> str:
        """Equal for names that count as one."""
        return name.lower() if self.any_case else name


def settings_of(settings: Mapping[str, Any]) -> Settings:
    """The settings of a source, as the ledger names them."""
    times, lenient = settings.get("timestamps", {}), settings.get("lenient", ())
    return Settings(
        times.get("unit"),
        times.get("fraction") == "cut",
        "any_case" in lenient,
        settings.get("on_empty") == "null",
    )


def row_of(columns: Sequence[Column]) -> pa.StructType:
    """The type of rows of these columns."""
    return pa.struct(list(schema_of(columns)))
