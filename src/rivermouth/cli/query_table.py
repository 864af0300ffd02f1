"""The answer to a SQL statement as a table for people."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from rivermouth.cli.text_table import text_table
from rivermouth.operate.sql import QueryResult


def render(result: QueryResult) -> str:
    """The answer for people, 80 columns wide; null is shown as ``null``."""
    numbers = [n for n, each in enumerate(result.arrow.schema) if _is_number(each.type)]
    rows = [[_cell(value) for value in row] for row in result.rows()]
    return text_table(result.columns, rows, numbers=numbers)


def _is_number(kind: pa.DataType) -> bool:
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    )


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
