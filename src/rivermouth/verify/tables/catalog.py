"""The tables under names in a catalog, asked in SQL by whoever the caller names.

A history shows no ``txn``; an entry is taken at its word, where the operation is one that writes
rows. Rows pass through the driver's memory, about a million at a time (see ``CatalogRows``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rivermouth.config import OFFSETS_TABLE, Catalog, TableName
from rivermouth.verify.ledger.commits import Commit
from rivermouth.verify.result import Findings
from rivermouth.verify.tables.batches import Unreadable, canonical
from rivermouth.verify.tables.slices import Slice, packed, width_of

Ask = Callable[[str], pa.Table]
"""Answers a statement of Spark's SQL, timestamps in UTC."""
AT_MOST = 1_000_000
"""Rows that are asked for at once."""
_OFFSET = "`_kafka`.`offset`"
_NO_TABLE = re.compile(r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|DELTA_MISSING_DELTA_TABLE")
_WRITES = ("WRITE", "MERGE")
"""Operations that write rows. Others may be stamped with the text of one, as OPTIMIZE is."""


class CatalogTables:
    """The tables of a configuration in a catalog."""

    def __init__(self, names: Catalog, ask: Ask) -> None:
        self._names = names
        self._ask = ask
        self._newest: dict[TableName, int] = {}

    def commits(self, table: TableName) -> CatalogCommits:
        """See ``Tables``. Reads the history once, and later its end."""
        return CatalogCommits(self._history(table), lambda: self._history(table, "LIMIT 1"))

    def rows(self, table: TableName, version: int | None = None) -> CatalogRows:
        """See ``Tables``. The newest version is the newest heard of, for all that is then asked."""
        if version is None and table not in self._newest:
            self._history(table, "LIMIT 1")
        at = self._newest[table] if version is None else version
        return CatalogRows(f"{self._name(table)} VERSION AS OF {at}", self._answer)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        return bool(self._history(table, "LIMIT 1"))

    def _history(self, table: TableName, limit: str = "") -> list[Mapping[str, Any]]:
        """The commits, newest first; none where there is no table in a schema that is there."""
        try:
            rows = self._ask(f"DESCRIBE HISTORY {self._name(table)} {limit}".rstrip())
        except Exception as fault:
            if not _NO_TABLE.search(str(fault)):
                raise _unreadable(fault) from fault
            # Of a schema or catalog that is not there, a table may be said to be missing, too.
            self._answer(f"DESCRIBE SCHEMA {self._name(table).rpartition('.')[0]}")
            return []
        wanted = ("version", "operation", "operationParameters", "userMetadata")
        found: list[Mapping[str, Any]] = rows.select(wanted).to_pylist()
        self._newest[table] = _newest(found)
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

    def __init__(
        self,
        history: Sequence[Mapping[str, Any]],
        end: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._commits = {int(each["version"]): _commit(each) for each in history}
        self._end = end
        self._newest = _newest(history)

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
        """See ``Commits``. What came since the history was read, its end tells by now."""
        if version > self._newest:
            self._newest = _newest(self._end())
        return version in self._commits or max(self._commits, default=-1) < version <= self._newest


class CatalogRows:
    """The rows of the table that ``name`` says, as of one version.

    Memory: where rows tell their offsets, at most ``at_most`` of them are asked for at once, or
    those of a single offset, or of none, where these are more. Files that their statistics rule
    out are not read again for it. Of other tables, as the quarantine, all rows are asked for.
    """

    def __init__(self, name: str, ask: Ask, at_most: int = AT_MOST) -> None:
        self._name = name
        self._ask = ask
        self._at_most = at_most
        self.schema: pa.Schema = ask(f"SELECT * FROM {name} LIMIT 0").schema

    def transaction(self, app: str) -> None:
        """See ``Rows``: a catalog does not tell."""

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See ``Rows``."""
        named = ", ".join(f"`{name}`" for name in columns)
        for part in self._parts():
            where = " AND ".join(f"({each})" for each in (predicate, part) if each)
            table = self._ask(f"SELECT {named} FROM {self._name}" + (where and f" WHERE {where}"))
            yield from (canonical(batch) for batch in table.to_batches())

    def _parts(self) -> Iterator[str]:
        """Predicates that part the rows; an empty one where they are few."""
        if "_kafka" not in self.schema.names:
            yield ""
            return
        bounds = f"count(*) AS n, min({_OFFSET}) AS low, max({_OFFSET}) AS high"
        [found] = self._ask(f"SELECT {bounds} FROM {self._name}").to_pylist()
        if found["n"] <= self._at_most or found["low"] is None:
            yield ""
            return
        for each in self._cut(Slice(found["low"], found["high"] + 1, found["n"])):
            yield each.within(_OFFSET)
        yield f"{_OFFSET} IS NULL"

    def _cut(self, whole: Slice) -> Iterator[Slice]:
        """Slices that hold few enough rows: pieces are counted, and put together or cut again."""
        width = width_of(whole)
        piece = f"floor(({_OFFSET} - {whole.start}) / {width}) AS piece"
        counted = self._ask(
            f"SELECT {piece}, count(*) AS n FROM {self._name}"
            f" WHERE {whole.within(_OFFSET)} GROUP BY piece"
        )
        pieces = {int(each["piece"]): int(each["n"]) for each in counted.to_pylist()}
        for each in packed(whole, pieces, self._at_most):
            if each.rows > self._at_most and width > 1:
                yield from self._cut(each)
            else:
                yield each


def _newest(history: Iterable[Mapping[str, Any]]) -> int:
    """The newest version in a history; -1: there is no table."""
    return max((int(each["version"]) for each in history), default=-1)


def _commit(row: Mapping[str, Any]) -> Commit:
    parameters = row["operationParameters"] or {}
    info = {
        "operation": row["operation"],
        "operationParameters": dict(parameters),
        "userMetadata": row["userMetadata"],
    }
    return Commit(info, _txns(row["operation"], row["userMetadata"]))


def _txns(operation: str, text: str | None) -> dict[str, int]:
    """The ``txn`` that an entry came with. A session conf may stamp its text on other commits."""
    if operation not in _WRITES:
        return {}
    try:
        facts = json.loads(text or "")
        if "rivermouth" not in facts:
            return {}
        return {f"rivermouth/{facts['pipeline']}": int(facts["sequence"])}
    except (ValueError, LookupError, TypeError):
        return {}


def _unreadable(fault: Exception) -> Unreadable:
    return Unreadable(str(fault).partition("\n")[0])
