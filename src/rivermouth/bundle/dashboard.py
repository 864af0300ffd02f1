"""The dashboard counts bad records in tables by name: in those of the project's own pipelines."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rivermouth.config import Config, TableName

SCHEMA = "schema_of_the_bundle"
"""What stands in for the bundle's schema, whose name is another in each target."""


def quarantines(config: Config, schema: str) -> list[str]:
    """The quarantine tables of a configuration that was loaded with ``SCHEMA``, in SQL.

    Each is there once: two pipelines may share it. One in the bundle's schema has no schema
    before it, since the dashboard has that one; in another, ``schema`` takes the place of
    ``SCHEMA``.
    """
    tables = dict.fromkeys(each.target.table.quarantine for each in config.pipelines.values())
    return [_name(each, schema) for each in tables]


def _name(table: TableName, schema: str) -> str:
    if table.schema == SCHEMA:
        return table.name
    return f"`{table.schema.replace(SCHEMA, schema)}`.`{table.name}`"


def over(dashboard: str, tables: Iterable[str]) -> str:
    """The text of a dashboard whose dataset ``quarantine`` is over these tables instead."""
    whole = json.loads(dashboard)
    (dataset,) = (each for each in whole["datasets"] if each["name"] == "quarantine")
    lines = dataset["queryLines"]
    first, last = lines.index("WITH held AS (\n") + 1, lines.index(")\n")
    selects = [f"  SELECT pipeline, commit, code, reason FROM {each}\n" for each in tables]
    lines[first:last] = "  UNION ALL\n".join(selects).splitlines(keepends=True)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
