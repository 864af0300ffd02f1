"""A column of a table, and the SQL types that it may have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SIMPLE = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
)
NESTED = ("ARRAY", "MAP", "STRUCT")
SYNONYMS = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
TYPES = (*SIMPLE, "DECIMAL", *NESTED, *SYNONYMS)
MEANT = {  # names of other systems, which are spelt too differently to be found by resemblance
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "TEXT": "STRING",
    "STR": "STRING",
    "BOOL": "BOOLEAN",
    "DATETIME": "TIMESTAMP",
    "NUMBER": "DECIMAL",
    "INT64": "BIGINT",
    "INT32": "INT",
    "BYTES": "BINARY",
    "LIST": "ARRAY",
    "OBJECT": "STRUCT",
}
LISTING = ", ".join((*SIMPLE, "DECIMAL(p,s)", "ARRAY<…>", "MAP<STRING, …>", "STRUCT<…>"))
"""The types as a user writes them."""


@dataclass(frozen=True)
class Column:
    """``type`` is SQL text, normalised: ``BIGINT``, ``DECIMAL(12,2)``, ``STRUCT<a: INT>``."""

    name: str
    type: str
    comment: str = field(default="", compare=False)

    @property
    def kind(self) -> str:
        """The type without its parameters: ``DECIMAL``, ``STRUCT``."""
        return re.split(r"[(<]", self.type, maxsplit=1)[0]

    @property
    def primitive(self) -> bool:
        return self.kind not in NESTED

    @property
    def floating(self) -> bool:
        return self.kind in ("FLOAT", "DOUBLE")

    @property
    def integral(self) -> bool:
        return self.kind in ("TINYINT", "SMALLINT", "INT", "BIGINT")
