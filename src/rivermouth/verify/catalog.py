"""The tables under names in a catalog, asked in SQL by whoever the caller names.

A history shows no ``txn``; an entry is taken at its word. Rows pass through the driver's memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.config import OFFSETS_TABLE, Catalog, TableName
from rivermouth.verify.commits import Commit
from rivermouth.verify.result import Findings
from rivermouth.verify.rows import Unreadable, canonical

Ask = Callable[[str], pa.Table]
"""Answers a statement of Spark's SQL, timestamps in UTC."""


class CatalogTables:
    """The tables of a configuration in a catalog."""

    def __init__(self, names: Catalog, ask: Ask) -> None:
        self._names = names
        self._ask = ask

    def commits(self, table: TableName) -> CatalogCommits:
        """See ``Tables``. Reads the history once."""
        return CatalogCommits(self._history(table))

    def rows(self, table: TableName, version: int | None = None) -> CatalogRows:
        """See ``Tables``."""
        at = "" if version is None else f" VERSION AS OF {version}"
        return CatalogRows(self._name(table) + at, self._answer)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        return bool(self._history(table))

    def _history(self, table: TableName) -> list[Mapping[str, Any]]:
        try:
            rows = self._ask(f"DESCRIBE HISTORY {self._name(table)}")
        except Exception as fault:
            if "NOT_FOUND" in str(fault) or "MISSING_DELTA_TABLE" in str(fault):
                return []
            raise _unreadable(fault) from fault
        wanted = ("version", "operation", "operationParameters", "userMetadata")
        found: list[Mapping[str, Any]] = rows.select(wanted).to_pylist()
        return found

    def _answer(self, statement: str) -> pa.Table:
        try:
            return self._ask(statement)
        except Exception as fault:  # whatever the engine raises, it is for a person to read
            raise _unreadable(fault) from fault

    def _name(self, table: TableName) -> str:
        schema = self._names.schema if table == OFFSETS_TABLE else table.schema
        parts = (self._names.catalog, schema, table.name)
        return ".".join(f"`{part}`" for part in parts)


class CatalogCommits:
    """The log of one table as its history tells it."""

    def __init__(self, history: Sequence[Mapping[str, Any]]) -> None:
        self._commits = {int(each["version"]): _commit(each) for each in history}

    def versions(self) -> list[int]:
        """See ``Commits``."""
        return sorted(self._commits)

    def checkpointed(self) -> int:
        """See ``Commits``: before what the history shows, there was one."""
        return min(self._commits, default=0) - 1

    def read(self, version: int, findings: Findings) -> Commit:
        """See ``Commits``."""
        del findings
        return self._commits[version]

    def has(self, version: int) -> bool:
        """See ``Commits``: of what came since nothing is known, so it is not accused."""
        return version in self._commits or version > max(self._commits, default=-1)


class CatalogRows:
    """The rows of the table that ``name`` says."""

    def __init__(self, name: str, ask: Ask) -> None:
        self._name = name
        self._ask = ask
        self.schema: pa.Schema = ask(f"SELECT * FROM {name} LIMIT 0").schema

    def transaction(self, app: str) -> None:
        """See ``Rows``: a catalog does not tell."""

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See ``Rows``."""
        named = ", ".join(f"`{name}`" for name in columns)
        where = f" WHERE {predicate}" if predicate else ""
        table = self._ask(f"SELECT {named} FROM {self._name}{where}")
        yield from (canonical(batch) for batch in table.to_batches())


def _commit(row: Mapping[str, Any]) -> Commit:
    parameters = row["operationParameters"] or {}
    info = {
        "operation": row["operation"],
        "operationParameters": dict(parameters),
        "userMetadata": row["userMetadata"],
    }
    return Commit(info, _txns(row["userMetadata"]))


def _txns(text: str | None) -> dict[str, int]:
    try:
        facts = json.loads(text or "")
        return {f"rivermouth/{facts['pipeline']}": int(facts["sequence"])}
    except (ValueError, LookupError, TypeError):
        return {}


def _unreadable(fault: Exception) -> Unreadable:
    return Unreadable(str(fault).partition("\n")[0])
