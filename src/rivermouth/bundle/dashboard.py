"""Puts the quarantine tables of a project into its dashboard, which names each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rivermouth.config import Config, TableName

SCHEMA = "schema_of_the_bundle"
"""A placeholder for the bundle's schema, whose name differs between targets."""


def quarantines(config: Config, schema: str) -> list[str]:
    """The quarantine tables of a configuration that was loaded with ``SCHEMA``, in SQL.

    Each table is there once, since two pipelines may share it. A table in the bundle's schema
    is named without a schema, since the dashboard sets that one. In any other schema name
    ``schema`` replaces ``SCHEMA``.
    """
    tables = dict.fromkeys(each.target.table.quarantine for each in config.pipelines.values())
    return [_name(each, schema) for each in tables]


def _name(table: TableName, schema: str) -> str:
    if table.schema == SCHEMA:
        return table.name
    return f"`{table.schema.replace(SCHEMA, schema)}`.`{table.name}`"


def over(dashboard: str, tables: Iterable[str]) -> str:
    """The text of ``dashboard`` with ``tables`` in its dataset ``quarantine``."""
    whole = json.loads(dashboard)
    (dataset,) = (each for each in whole["datasets"] if each["name"] == "quarantine")
    lines = dataset["queryLines"]
    first, last = lines.index("WITH held AS (\n") + 1, lines.index(")\n")
    selects = [f"  SELECT pipeline, commit, code, reason FROM {each}\n" for each in tables]
    lines[first:last] = "  UNION ALL\n".join(selects).splitlines(keepends=True)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
