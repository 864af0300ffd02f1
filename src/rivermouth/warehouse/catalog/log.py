"""The edge to the log of a table that only a catalog knows: its history, asked through SQL.

A history shows everything of a commit but its ``txn`` actions, so an entry is taken at its
word: its sequence stands for the ``txn``, where the operation is one by which entries are
written. What Delta compared at the commit is not weakened by that. An answer that does not come
is never taken for an empty history: after a write that would mean that nothing was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rivermouth.errors import LedgerBroken, LogUnreadable
from rivermouth.protocol.commits import CommitRecord, app_id, deleted_rows
from rivermouth.spark.address import Address
from rivermouth.spark.errors import FAULTS, reason, translate
from rivermouth.warehouse.folder.log import duration_s
from rivermouth.warehouse.ports import TableFacts

_COLUMNS = (
    "version",
    "unix_millis(timestamp) AS timestamp_ms",
    "operation",
    "operationParameters AS parameters",
    "userMetadata AS user_metadata",
    "operationMetrics AS metrics",
)
_AT_ONCE = 20
"""How many commits are asked for after a write; nearly always one is there."""
_OPERATIONS = {"WRITE", "MERGE"}
"""By which entries are written; with the text of one, another operation carries none."""
_ABSENT = re.compile(r"TABLE_OR_VIEW_NOT_FOUND|DELTA_TABLE_NOT_FOUND|DELTA_MISSING_DELTA_TABLE")


class CatalogLog:
    """The log of the table at ``address``."""

    def __init__(self, session: SparkSession, address: Address) -> None:
        self._session = session
        self._address = address

    def commits(self) -> Iterator[CommitRecord]:
        """Every readable commit, in order; none where there is no table.

        Versions may start above 0 after clean-up.
        """
        yield from self._history("", missing_ok=True)

    def commits_after(self, version: int) -> Iterator[CommitRecord]:
        """The commits that came after ``version``, which is there."""
        limit = _AT_ONCE
        while True:
            found = self._history(f"LIMIT {limit}")
            if found[-1].version < version:
                raise LedgerBroken(
                    "the history has lost its end: the table is another one, or rolled back",
                    where=str(self._address),
                    expected=f"version {version}",
                    found=f"version {found[-1].version}",
                )
            if len(found) < limit or found[0].version <= version + 1:
                yield from (each for each in found if each.version > version)
                return
            limit *= 10

    def commits_backwards(self) -> Iterator[CommitRecord]:
        """See ``ports.LedgerLog``: asked for in pieces that grow."""
        limit, given = _AT_ONCE, -1
        while True:
            found = self._history(f"LIMIT {limit}", missing_ok=True)[::-1]
            # Commits may have come since the last answer: they are not of this look.
            for each in found:
                if given < 0 or each.version < given:
                    yield each
            if len(found) < limit:
                return
            limit, given = limit * 10, found[-1].version

    def newest_record_ms(self, version: int) -> None:
        """See ``ports.LedgerLog``: a history does not tell."""

    def table(self, app: str) -> TableFacts:
        """See ``ports.LedgerLog``: a catalog does not tell the ``txn``."""
        detail = self._detail()
        retention = detail["properties"].get("delta.logRetentionDuration")
        return TableFacts(str(detail["id"]), None, duration_s(retention))

    def _history(self, limit: str, *, missing_ok: bool = False) -> list[CommitRecord]:
        statement = f"DESCRIBE HISTORY {self._address.sql} {limit}"
        rows = self._ask(statement, _COLUMNS, missing_ok=missing_ok)
        return sorted((_record(each) for each in rows), key=lambda each: each.version)

    def _detail(self) -> Mapping[str, Any]:
        return self._ask(f"DESCRIBE DETAIL {self._address.sql}", ("id", "properties"))[0]

    def _ask(
        self, statement: str, columns: tuple[str, ...], *, missing_ok: bool = False
    ) -> list[Mapping[str, Any]]:
        try:
            rows = self._session.sql(statement).selectExpr(*columns).collect()
        except FAULTS as fault:
            if missing_ok and _ABSENT.search(str(fault)):
                return []
            where, found = str(self._address), reason(fault)
            if not isinstance(fault, PySparkException):  # of the log that says nothing
                raise translate(fault, where) from fault
            raise LogUnreadable("the history cannot be read", where=where, found=found) from fault
        return [each.asDict() for each in rows]


def _record(row: Mapping[str, Any]) -> CommitRecord:
    operation, text = str(row["operation"]), row["user_metadata"]
    return CommitRecord(
        version=int(row["version"]),
        timestamp_ms=int(row["timestamp_ms"]),
        operation=operation,
        parameters=row["parameters"] or {},
        txns=_txns(operation, text),
        user_metadata=text,
        deleted_rows=deleted_rows(row["metrics"]),
    )


def _txns(operation: str, text: str | None) -> dict[str, int]:
    """The ``txn`` that an entry came with. A session conf may stamp its text on others' commits."""
    if text is None or operation not in _OPERATIONS:
        return {}
    try:
        facts = json.loads(text)
        if "rivermouth" not in facts:
            return {}
        return {app_id(str(facts["pipeline"])): int(facts["sequence"])}
    except (ValueError, LookupError, TypeError):
        return {}
