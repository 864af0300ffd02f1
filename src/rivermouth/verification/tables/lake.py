"""The tables of a lake: log files read as text, rows read by delta-rs.

delta-rs applies deletion vectors and column mapping. Spark is not involved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import obstore
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from rivermouth.config import TableName
from rivermouth.storage.faults import asked
from rivermouth.storage.lake import Lake, in_bucket
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.result import Findings, Kind
from rivermouth.verification.tables.ports import Unreadable, canonical

_COMMIT_FILE = re.compile(r"(\d{20})\.json")
_WANTED = re.compile(r'\s*\{\s*"(commitInfo|txn)"')
# Spark writes INT96 by default. Read as nanoseconds, years before 1678 and after 2262 overflow.
_ENGINE = {"datafusion.execution.parquet.coerce_int96": "us"}
_AHEAD = 32


class LakeTables:
    """The tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def commits(self, table: TableName) -> LakeCommits:
        """See ``Tables``."""
        return LakeCommits(self._lake, table)

    def rows(self, table: TableName, version: int | None = None) -> LakeRows:
        """See ``Tables``."""
        return LakeRows(self._lake, table, version)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        log = LakeCommits(self._lake, table)
        return bool(log.versions()) or log.checkpointed() >= 0


class LakeCommits:
    """The log of a table. On a walk, either way, a bucket is asked for some commits at once, since
    each answer takes long.
    """

    def __init__(self, lake: Lake, table: TableName) -> None:
        self._client = lake.client
        self._log = lake.path(table.schema, table.name, "_delta_log")
        self._at_once = _AHEAD if in_bucket(lake) else 1
        self._there: frozenset[int] = frozenset()
        self._last = -1
        self._asked: dict[int, Future[bytes]] = {}

    def versions(self) -> list[int]:
        """See ``Commits``."""
        names = map(_COMMIT_FILE.fullmatch, self._names())
        self._there = frozenset(int(match[1]) for match in names if match)
        return sorted(self._there)

    def checkpointed(self) -> int:
        """See ``Commits``."""
        found = (each for each in self._names() if ".checkpoint" in each)
        names = (each[:20] for each in found if each.endswith((".parquet", ".json")))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def read(self, version: int, findings: Findings) -> Commit:
        """See ``Commits``."""
        info: Mapping[str, Any] = {}
        txns: dict[str, int] = {}
        try:
            lines = self._read(version).decode("utf-8").split("\n")
            actions = [json.loads(line) for line in lines if _WANTED.match(line)]
            if not any(map(str.strip, lines)):
                raise ValueError("it is empty")
        except (OSError, ValueError) as fault:
            findings.add(Kind.FAULT, f"version {version} of the log cannot be read: {fault}")
            actions = []
        for each in actions:
            if "commitInfo" in each:
                info = each["commitInfo"]
            else:
                txns[each["txn"]["appId"]] = int(each["txn"]["version"])
        return Commit(info, txns)

    def has(self, version: int) -> bool:
        """See ``Commits``."""
        try:
            self._read(version)
        except FileNotFoundError:
            return False
        return True

    def _read(self, version: int) -> bytes:
        step, self._last = version - self._last, version
        if version not in self._asked:
            after = (version + step * each for each in range(1, self._at_once))
            following = [each for each in after if each in self._there] if abs(step) == 1 else []
            if not following:
                return self._content(version)
            self._asked = {
                each: _pool().submit(self._content, each) for each in (version, *following)
            }
        return self._asked.pop(version).result()

    def _content(self, version: int) -> bytes:
        path, objects = f"{self._log}/{version:020d}.json", self._client.objects
        return bytes(asked(path, lambda: obstore.get(objects, path).bytes()))

    def _names(self) -> list[str]:
        begins, objects = f"{self._log}/", self._client.objects
        found = asked(
            begins, lambda: [each for some in obstore.list(objects, begins) for each in some]
        )
        names = (each["path"].rpartition("/_delta_log/")[2] for each in found)
        return [each for each in names if "/" not in each]


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AHEAD, "verify")


class LakeRows:
    """The rows of a table of a lake, at ``version`` (None: the newest)."""

    def __init__(self, lake: Lake, table: TableName, version: int | None = None) -> None:
        options = lake.client.delta_rs or None
        try:
            self._table = DeltaTable(lake.address(table), version, storage_options=options)
            self._schema = pa.schema(self._table.schema().to_arrow())
        except (DeltaError, TableNotFoundError) as fault:
            raise Unreadable(f"{table}: {fault}") from fault

    @property
    def schema(self) -> pa.Schema:
        """See ``Rows``."""
        return self._schema

    def transaction(self, app: str) -> int:
        """See ``Rows``."""
        return self._table.transaction_version(app) or 0

    def batches(
        self, columns: Sequence[str], predicate: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See ``Rows``. A few thousand rows at a time."""
        named = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        statement = f"SELECT {named} FROM rows" + (f" WHERE {predicate}" if predicate else "")
        try:
            engine = QueryBuilder(_ENGINE).register("rows", self._table)
            for batch in pa.RecordBatchReader.from_stream(engine.execute(statement)):
                yield canonical(batch)
        except (DeltaError, pa.ArrowException, OSError) as fault:
            raise Unreadable(str(fault)) from fault
