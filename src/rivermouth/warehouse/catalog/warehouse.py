"""Tables under names in a catalog. Whose driver may write is decided by Delta's ``txn`` alone.

A history shows everything of a commit but its ``txn`` actions, so an entry is taken at its
word: its sequence stands for the ``txn``, where the operation is one by which entries are
written. What Delta compared at the commit is not weakened by that. An answer that does not come
is never taken for an empty history: after a write that would mean that nothing was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import or_
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from rivermouth.config import OFFSETS_TABLE, Catalog, Pipeline, TableName
from rivermouth.errors import LedgerBroken, LogUnreadable, ProjectionFailed
from rivermouth.local.scratch import volume_folder
from rivermouth.protocol.commits import CommitRecord, Recorded, app_id, deleted_rows
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.protocol.ways import duration_s
from rivermouth.spark.errors import FAULTS, reason, translate
from rivermouth.spark.session import Spark, balanced
from rivermouth.spark.tables import Address
from rivermouth.warehouse.catalog.offsets import CatalogOffsets
from rivermouth.warehouse.ports import (
    ATTEMPTS,
    Attempts,
    LedgerStore,
    LedgerWrites,
    TableFacts,
)
from rivermouth.warehouse.quarantine import create_quarantine
from rivermouth.warehouse.spark_commits import record

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
        detail = self._ask(f"DESCRIBE DETAIL {self._address.sql}", ("id", "properties"))[0]
        retention = detail["properties"].get("delta.logRetentionDuration")
        return TableFacts(str(detail["id"]), None, duration_s(retention))

    def _history(self, limit: str, *, missing_ok: bool = False) -> list[CommitRecord]:
        statement = f"DESCRIBE HISTORY {self._address.sql} {limit}"
        rows = self._ask(statement, _COLUMNS, missing_ok=missing_ok)
        return sorted((_record(each) for each in rows), key=lambda each: each.version)

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


def with_counts(
    session: SparkSession, address: Address, entries: Sequence[Recorded]
) -> list[Recorded]:
    """The same entries with their counts: counted in the table where an entry has none.

    One query, which reads the files that statistics do not rule out. Raises ProjectionFailed.
    """
    unknown = [each for each in entries if each.entry.rows is None]
    ranges = [one for each in unknown for one in each.entry.ranges]
    counts = dict(zip(ranges, _counted(session, address, ranges), strict=True)) if ranges else {}
    return [
        each.counted(tuple(counts[one] for one in each.entry.ranges))
        if each.entry.rows is None
        else each
        for each in entries
    ]


def _counted(
    session: SparkSession, address: Address, ranges: Sequence[OffsetRange]
) -> list[RowCounts]:
    rows = [
        (each.topic, each.partition, each.from_offset, each.until_offset, number)
        for number, each in enumerate(ranges)
    ]
    try:
        # One join, whatever their number: an aggregate for each range would be asked for each row.
        wanted = session.createDataFrame(rows, _RANGES).hint("broadcast")
        kafka = F.col("_kafka")
        place = [kafka.getField(each).alias(each) for each in ("topic", "partition", "offset")]
        here = address.read(session).where(_bounds(ranges)).select(*place)
        inside = (F.col("offset") >= F.col("first")) & (F.col("offset") < F.col("until"))
        joined = here.join(wanted, ["topic", "partition"]).where(inside)
        found = {row["number"]: row["count"] for row in joined.groupBy("number").count().collect()}
    except FAULTS as fault:
        raise ProjectionFailed(
            "the commits stand, but their rows cannot be counted",
            where=str(address),
            found=reason(fault),
            remedy="Run again: the start counts them and brings the offsets table up to date",
        ) from fault
    # Since an accepted change of the source, rows of earlier records may have these coordinates.
    return [RowCounts(min(found.get(n, 0), each.span), 0) for n, each in enumerate(ranges)]


_FEW = 64  # ranges that are looked for one by one: a condition is planned anew at each commit
_RANGES = "topic STRING, partition INT, first BIGINT, until BIGINT, number INT"


def _bounds(ranges: Sequence[OffsetRange]) -> Column:
    """What statistics of files can rule out: a few ranges each, of many those of a topic together.

    Together they may span much of the table, if the offsets of the partitions are far apart.
    """
    if len(ranges) <= _FEW:
        return balanced(or_, [_bound(each.topic, [each]) for each in ranges])
    by_topic: dict[str, list[OffsetRange]] = {}
    for each in ranges:
        by_topic.setdefault(each.topic, []).append(each)
    return balanced(or_, [_bound(topic, its) for topic, its in by_topic.items()])


def _bound(topic: str, ranges: Sequence[OffsetRange]) -> Column:
    kafka, numbers = F.col("_kafka"), [each.partition for each in ranges]
    first = min(each.from_offset for each in ranges)
    last = max(each.until_offset for each in ranges)
    return (
        (kafka.getField("topic") == topic)
        & kafka.getField("partition").between(min(numbers), max(numbers))
        & kafka.getField("offset").between(first, last)
    )


class CatalogWarehouse:
    """The tables of a configuration in the catalog that ``names`` says."""

    lake = None

    def __init__(
        self, session: SparkSession, names: Catalog, attempts: Attempts = ATTEMPTS
    ) -> None:
        self._session = session
        self._names = names
        self._offsets = CatalogOffsets(session, self.offsets(), attempts)

    def address(self, table: TableName) -> Address:
        """See ``Warehouse.address``."""
        return Address(name=(self._names.catalog, table.schema, table.name))

    def offsets(self) -> Address:
        """See ``Warehouse.offsets``."""
        return Address(name=(self._names.catalog, self._names.schema, OFFSETS_TABLE.name))

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Warehouse.hold``: nobody is kept out; a second driver's commit fails."""
        del table
        yield

    def ledger(self, pipeline: Pipeline) -> LedgerStore:
        """See ``Warehouse.ledger``."""
        log = CatalogLog(self._session, self.address(pipeline.target.table))
        return LedgerStore(log, self._offsets)

    def writes(self, pipeline: Pipeline) -> LedgerWrites:
        """See ``Warehouse.writes``."""
        address = self.address(pipeline.target.table)
        return LedgerWrites(
            count=partial(with_counts, self._session, address),
            record=partial(record, Spark.of(self._session), address),
            translate=partial(translate, where=pipeline.name),
        )

    def scratch(self) -> Path:
        """See ``Warehouse.scratch``: the volume."""
        return volume_folder(self._names)

    def prepare(self, session: SparkSession, pipeline: Pipeline) -> None:
        """See ``Warehouse.prepare``: in a catalog a write that creates a table counts nothing."""
        create_quarantine(session, self.address(pipeline.target.table.quarantine))
