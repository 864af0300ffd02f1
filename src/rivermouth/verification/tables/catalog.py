"""The tables under names in a catalog, asked in SQL by a function that the caller gives.

A history shows no ``txn``. So the text of a commit counts as an entry where its operation writes
rows. Rows go through the memory of the driver, at most about a million at a time, see
``CatalogRows``; of the offsets table those of one pipeline at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from rivermouth.config import OFFSETS_TABLE, Catalog, TableName
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.result import Findings
from rivermouth.verification.tables.ports import Unreadable, canonical

_PIECES = 2000
"""How many pieces one query counts, before they are joined."""


@dataclass(frozen=True)
class _Slice:
    """The offsets ``start <= o < until`` of all partitions, and how many rows have them."""

    start: int
    until: int
    rows: int

    @property
    def width(self) -> int:
        """How many offsets each of its pieces has."""
        return -(-(self.until - self.start) // _PIECES)

    def condition(self, offset: str) -> str:
        """What holds for its rows, in SQL; ``offset`` is the column."""
        return f"{offset} >= {self.start} AND {offset} < {self.until}"

    def joined(self, pieces: Mapping[int, int], at_most: int) -> list[_Slice]:
        """Slices of at most ``at_most`` rows that together hold all of its rows, in order.

        ``pieces`` are the numbers of rows by the number of the piece. A piece that alone holds more
        is a slice of its own.
        """
        found: list[_Slice] = []
        for number, rows in sorted(pieces.items()):
            start = self.start + number * self.width
            until = min(start + self.width, self.until)
            if found and found[-1].rows + rows <= at_most:
                found[-1] = _Slice(found[-1].start, until, found[-1].rows + rows)
            else:
                found.append(_Slice(start, until, rows))
        return found


Ask = Callable[[str], pa.Table]
"""Answers a statement in Spark's SQL; timestamps are in UTC."""
AT_MOST = 1_000_000
"""How many rows one query may return."""
_NO_TABLE = re.compile(r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|DELTA_MISSING_DELTA_TABLE")
_WRITES = ("WRITE", "MERGE")
"""Operations that write rows. Others may carry the text of an entry too, as OPTIMIZE does."""


class CatalogTables:
    """The tables of a configuration in a catalog."""

    def __init__(self, names: Catalog, ask: Ask) -> None:
        self._names = names
        self._ask = ask
        self._newest: dict[TableName, int] = {}

    def commits(self, table: TableName) -> CatalogCommits:
        """See ``Tables``. Reads the history once, and its newest commit again when asked later."""
        return CatalogCommits(self._history(table), lambda: self._history(table, "LIMIT 1"))

    def rows(self, table: TableName, version: int | None = None) -> CatalogRows:
        """See ``Tables``. ``None`` is the newest version known; all queries then use that one."""
        if version is None and table not in self._newest:
            self._history(table, "LIMIT 1")
        at = self._newest[table] if version is None else version
        name = f"{self._name(table)} VERSION AS OF {at}"
        return CatalogRows(name, self._answer, at_once=table == OFFSETS_TABLE)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        return bool(self._history(table, "LIMIT 1"))

    def _history(self, table: TableName, limit: str = "") -> list[Mapping[str, Any]]:
        """The commits, newest first; none where the schema exists and the table does not."""
        try:
            rows = self._ask(f"DESCRIBE HISTORY {self._name(table)} {limit}".rstrip())
        except Exception as fault:
            if not _NO_TABLE.search(str(fault)):
                raise _unreadable(fault) from fault
            # Where schema or catalog do not exist, the answer may also be: no such table.
            self._answer(f"DESCRIBE SCHEMA {self._name(table).rpartition('.')[0]}")
            return []
        facts = ("operation", "operationParameters", "operationMetrics", "userMetadata")
        wanted = ["version", "timestamp", *facts]
        found: list[Mapping[str, Any]] = rows.select(wanted).to_pylist()
        self._newest[table] = _newest(found)
        return found

    def _answer(self, statement: str) -> pa.Table:
        try:
            return self._ask(statement)
        except Exception as fault:  # each engine raises its own types
            raise _unreadable(fault) from fault

    def _name(self, table: TableName) -> str:
        schema = self._names.schema if table == OFFSETS_TABLE else table.schema
        parts = (self._names.catalog, schema, table.name)
        return ".".join(f"`{part}`" for part in parts)


class CatalogCommits:
    """The log of one table, from its history."""

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
        """See ``Commits``: a history that begins later than 0 begins after a checkpoint."""
        return min(self._commits, default=0) - 1

    def read(self, version: int, findings: Findings) -> Commit:
        """See ``Commits``."""
        del findings
        return self._commits[version]

    def has(self, version: int) -> bool:
        """See ``Commits``. For a newer version, the newest commit is asked for again."""
        if version > self._newest:
            self._newest = _newest(self._end())
        return version in self._commits or max(self._commits, default=-1) < version <= self._newest


class CatalogRows:
    """The rows of the table at one version; ``name`` is its name in SQL with the version.

    Memory: where rows have Kafka offsets, as those of most targets and of a quarantine, one query
    returns at most ``at_most`` rows; only the rows of a single offset, and those without an offset,
    are never split. The engine skips files by their statistics. Of totals, which have no offsets,
    it returns about ``at_most``, by a hash of the row; each query then reads all files.
    ``at_once``: one query returns all rows, as of the offsets table those of one pipeline.
    """

    def __init__(
        self, name: str, ask: Ask, at_most: int = AT_MOST, *, at_once: bool = False
    ) -> None:
        self._at_once = at_once
        self._name = name
        self._ask = ask
        self._at_most = at_most
        self.schema: pa.Schema = ask(f"SELECT * FROM {name} LIMIT 0").schema
        self._by = _split_by(self.schema)

    def transaction(self, app: str) -> None:
        """See ``Rows``: a catalog does not tell it."""

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See ``Rows``."""
        named = ", ".join(f"`{name}`" for name in columns)
        for part in self._parts(columns, predicate):
            table = self._ask(f"SELECT {named} FROM {self._name}{_where(predicate, part)}")
            yield from (canonical(batch) for batch in table.to_batches())

    def _parts(self, columns: Sequence[str], predicate: str | None) -> Iterator[str]:
        """What splits the rows that fulfil a predicate into parts; empty where they are few.

        Only these rows are counted: of the others, the engine then opens no file.
        """
        if self._at_once:
            yield ""
            return
        if self._by is None:
            yield from self._remainders(columns, predicate)
            return
        bounds = f"count(*) AS n, min({self._by}) AS low, max({self._by}) AS high"
        [found] = self._ask(f"SELECT {bounds} FROM {self._name}{_where(predicate)}").to_pylist()
        if found["n"] <= self._at_most or found["low"] is None:
            yield ""
            return
        whole = _Slice(found["low"], found["high"] + 1, found["n"])
        for each in self._split(whole, predicate):
            yield each.condition(self._by)
        yield f"{self._by} IS NULL"

    def _remainders(self, columns: Sequence[str], predicate: str | None) -> Iterator[str]:
        """What splits rows without offsets: remainders of a hash of the wanted columns."""
        counting = f"SELECT count(*) AS n FROM {self._name}{_where(predicate)}"
        [found] = self._ask(counting).to_pylist()
        parts = -(-int(found["n"]) // self._at_most)
        named = ", ".join(f"`{name}`" for name in columns)
        if parts <= 1:
            yield ""
            return
        yield from (f"pmod(xxhash64({named}), {parts}) = {each}" for each in range(parts))

    def _split(self, whole: _Slice, predicate: str | None) -> Iterator[_Slice]:
        """Slices of at most ``at_most`` rows: pieces are counted, then joined or split again."""
        by = str(self._by)
        piece = f"floor(({by} - {whole.start}) / {whole.width}) AS piece"
        counted = self._ask(
            f"SELECT {piece}, count(*) AS n FROM {self._name}"
            f"{_where(predicate, whole.condition(by))} GROUP BY piece"
        )
        pieces = {int(each["piece"]): int(each["n"]) for each in counted.to_pylist()}
        for each in whole.joined(pieces, self._at_most):
            if each.rows > self._at_most and whole.width > 1:
                yield from self._split(each, predicate)
            else:
                yield each


def _split_by(schema: pa.Schema) -> str | None:
    """The offsets by which the rows of a table are split."""
    known = {"_kafka": "`_kafka`.`offset`", "offset": "`offset`"}
    return next((by for name, by in known.items() if name in schema.names), None)


def _where(*conditions: str | None) -> str:
    """The clause that holds for all of the conditions; empty where there is none."""
    found = " AND ".join(f"({each})" for each in conditions if each)
    return found and f" WHERE {found}"


def _newest(history: Iterable[Mapping[str, Any]]) -> int:
    """The newest version in a history; -1: there is no table."""
    return max((int(each["version"]) for each in history), default=-1)


def _commit(row: Mapping[str, Any]) -> Commit:
    parameters = row["operationParameters"] or {}
    at: datetime = row["timestamp"]
    info = {
        "timestamp": int(at.replace(tzinfo=at.tzinfo or timezone.utc).timestamp() * 1000),
        "operation": row["operation"],
        "operationParameters": dict(parameters),
        "operationMetrics": dict(row["operationMetrics"] or {}),
        "userMetadata": row["userMetadata"],
    }
    return Commit(info, _txns(row["operation"], row["userMetadata"]))


def _txns(operation: str, text: str | None) -> dict[str, int]:
    """The ``txn`` of an entry. A session conf may put the entry's text on other commits too."""
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
