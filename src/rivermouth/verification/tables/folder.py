"""The tables in a local warehouse: log files read as text, rows read by delta-rs.

delta-rs applies deletion vectors and column mapping. Spark is not involved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from rivermouth.config import TableName
from rivermouth.verification.ledger.entry import Commit
from rivermouth.verification.result import Findings, Kind
from rivermouth.verification.tables.ports import Unreadable, canonical

_COMMIT_FILE = re.compile(r"(\d{20})\.json")
_WANTED = re.compile(r'\s*\{\s*"(commitInfo|txn)"')
# Spark writes INT96 by default. Read as nanoseconds, years before 1678 and after 2262 overflow.
_ENGINE = {"datafusion.execution.parquet.coerce_int96": "us"}


class FolderTables:
    """The tables in the local warehouse ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commits(self, table: TableName) -> FolderCommits:
        """See ``Tables``."""
        return FolderCommits(table.path(self._folder))

    def rows(self, table: TableName, version: int | None = None) -> FolderRows:
        """See ``Tables``."""
        return FolderRows(table.path(self._folder), version)

    def exist(self, table: TableName) -> bool:
        """See ``Tables``."""
        return DeltaTable.is_deltatable(str(table.path(self._folder)))


class FolderCommits:
    """The log in the folder of the table at ``path``."""

    def __init__(self, path: Path) -> None:
        self._log = path / "_delta_log"

    def versions(self) -> list[int]:
        """See ``Commits``."""
        names = (_COMMIT_FILE.fullmatch(each.name) for each in self._log.glob("*.json"))
        return sorted(int(match[1]) for match in names if match)

    def checkpointed(self) -> int:
        """See ``Commits``."""
        found = self._log.glob("*.checkpoint*")
        names = (each.name[:20] for each in found if each.suffix in (".parquet", ".json"))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def read(self, version: int, findings: Findings) -> Commit:
        """See ``Commits``."""
        info: Mapping[str, Any] = {}
        txns: dict[str, int] = {}
        try:
            lines = self._file(version).read_text("utf-8").split("\n")
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
        return self._file(version).exists()

    def _file(self, version: int) -> Path:
        return self._log / f"{version:020d}.json"


class FolderRows:
    """The rows of the table at ``path``, at ``version`` (None: the newest)."""

    def __init__(self, path: Path, version: int | None = None) -> None:
        try:
            self._table = DeltaTable(str(path), version=version)
            self._schema = pa.schema(self._table.schema().to_arrow())
        except (DeltaError, TableNotFoundError) as fault:
            raise Unreadable(f"{path.parent.name}.{path.name}: {fault}") from fault

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
