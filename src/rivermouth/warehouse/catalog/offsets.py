"""The offsets table under a name in a catalog: the same table, written through Spark.

See ``warehouse.offsets_rows`` for its columns and for what it is. A projection is one commit with
a ``txn`` of its own; what it holds tells how far it has come, as a catalog shows no ``txn``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermouth.errors import OffsetsUnreadable, Passing, ProjectionFailed
from rivermouth.protocol.commits import Recorded
from rivermouth.spark.errors import FAULTS, is_conflict, is_gone, reason
from rivermouth.spark.tables import Address, literal, set_table_property, table_property
from rivermouth.warehouse.offsets_rows import (
    AGAIN,
    COLUMNS,
    SCHEMA,
    app_of,
    expired,
    newest_of,
    rows_of,
)
from rivermouth.warehouse.ports import ATTEMPTS, Attempts
from rivermouth.warehouse.tables import make_table

_TYPES = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.int32(): "INT"}
_HALTED = "rivermouth.halted."
_NOTE_ATTEMPTS = 3  # a halt waits for the note
_ANEW = "If it is damaged, DROP it: a run writes it anew, from what the tables' logs still hold"


class CatalogOffsets:
    """The offsets table at ``address``. Shared by all pipelines.

    ``attempts`` are made while others write to it.
    """

    def __init__(
        self, session: SparkSession, address: Address, attempts: Attempts = ATTEMPTS
    ) -> None:
        self._session = session
        self._attempts = attempts
        self._address = address
        self._there = False
        self._creating = threading.Lock()

    def sequence(self, pipeline: str) -> int:
        """The newest sequence that has rows of the pipeline; 0 where there is none.

        An entry that covers no offsets has no rows; it is projected again, as nothing.
        """
        newest = "coalesce(max(sequence), 0) AS sequence"
        rows = self._collect(lambda table: _of(table, pipeline).selectExpr(newest))
        return int(rows[0]["sequence"])

    def newest(self, pipeline: str) -> Recorded | None:
        """See ``ports.OffsetsTable``."""
        rows = self._collect(lambda table: _of(table, pipeline).select(*COLUMNS))
        return newest_of(rows)

    def rollback_noted(self, pipeline: str) -> int:
        """See ``ports.OffsetsTable``."""
        try:
            self._create()
            noted = table_property(self._session, self._address, _HALTED + pipeline)
        except FAULTS as fault:
            raise self._unreadable(fault) from fault
        return int(noted) if noted.isdigit() else 0

    def note_rollback(self, pipeline: str, version: int) -> None:
        """See ``ports.OffsetsTable``."""
        if self.rollback_noted(pipeline) >= version:
            return
        note = partial(set_table_property, self._session, self._address, _HALTED + pipeline)
        self._committed(lambda: note(str(version)), _NOTE_ATTEMPTS)

    def project(self, entries: Sequence[Recorded]) -> None:
        """See ``ports.OffsetsTable``: one commit for each pipeline, as a write has one ``txn``."""
        by_pipeline: dict[str, list[Recorded]] = {}
        for each in entries:
            if each.entry.ranges:
                by_pipeline.setdefault(each.entry.pipeline, []).append(each)
        for its in by_pipeline.values():
            self._committed(partial(self._project, its))

    def version(self) -> int:
        """See ``ports.OffsetsTable``."""
        history = self._session.sql(f"DESCRIBE HISTORY {self._address.sql} LIMIT 1").collect()
        return int(history[0]["version"])

    def compact(self) -> None:
        """See ``ports.OffsetsTable``."""
        self._session.sql(f"OPTIMIZE {self._address.sql}").collect()

    def forget(self, before_ms: int, pipelines: Collection[str]) -> None:
        """See ``ports.OffsetsTable``."""
        old = f"committed_at < timestamp_millis({before_ms}) AND quarantined = 0"
        rows = self._address.read(self._session).where(old)
        rows = rows.where(F.col("pipeline").isin([*pipelines]))
        newest = (F.max("sequence").alias("newest"), F.count("*").alias("number"))
        found = rows.groupBy("pipeline", "topic", "partition").agg(*newest).collect()
        for each in expired((*each,) for each in found):
            self._session.sql(f"DELETE FROM {self._address.sql} WHERE {each}").collect()

    def _project(self, entries: Sequence[Recorded]) -> None:
        """Of two drivers that project at once, each must leave the same rows.

        Delta passes over a ``txn`` that is not new, and refuses one that another driver's has
        overtaken. What it does not see is that of several entries the first were written since
        we looked: so several replace what is there of them, in the same commit.
        """
        pipeline = entries[0].entry.pipeline
        known = self.sequence(pipeline)
        missing = [each for each in entries if each.entry.sequence > known]
        if not missing:
            return
        options = _replacing(missing) if len(missing) > 1 else {}
        sequence = str(missing[-1].entry.sequence)
        options |= {"txnAppId": app_of(pipeline), "txnVersion": sequence}
        self._write(missing, options)

    def _write(self, entries: Sequence[Recorded], options: dict[str, str]) -> None:
        rows = self._session.createDataFrame(rows_of(entries))
        mode = "overwrite" if "replaceWhere" in options else "append"
        self._address.write(rows.coalesce(1).write.mode(mode).options(**options))

    def _committed(self, write: Callable[[], object], at_most: int | None = None) -> None:
        """Carry out a write, again where commits of others were in its way."""
        conflict: Exception | None = None
        for _ in islice(self._attempts.each(), at_most):
            try:
                self._create()
                write()
                return
            except FAULTS as fault:
                if not is_conflict(fault):
                    raise self._failed("could not be written", fault) from fault
                conflict = fault
        if conflict is not None:
            raise self._failed("could not be written", conflict) from conflict

    def _collect(self, question: Callable[[DataFrame], DataFrame]) -> list[dict[str, Any]]:
        try:
            self._create()
            found = question(self._address.read(self._session))
            return [each.asDict() for each in found.collect()]
        except FAULTS as fault:
            raise self._unreadable(fault) from fault

    def _create(self) -> None:
        with self._creating:
            if not self._there:
                types = ((each.name, _TYPES.get(each.type, "TIMESTAMP")) for each in SCHEMA)
                columns = ", ".join(f"{name} {kind}" for name, kind in types)
                make_table(self._session, self._address, columns, attempts=self._attempts)
            self._there = True

    def _unreadable(self, fault: Exception) -> OffsetsUnreadable:
        gone = not isinstance(fault, PySparkException)  # the JVM, which says nothing of the table
        what = "the offsets table cannot be read; the target table is as it should be"
        remedy = AGAIN if gone else _ANEW
        return OffsetsUnreadable(
            what,
            where=str(self._address),
            found=reason(fault),
            remedy=remedy,
            passes=Passing.NO if is_gone(fault) else None,
        )

    def _failed(self, how: str, fault: Exception) -> ProjectionFailed:
        what = f"the offsets table {how}; the target table is as it should be"
        # After a conflict the time to try again is up, and a JVM that is gone does not come back.
        over = is_conflict(fault) or is_gone(fault)
        return ProjectionFailed(
            what,
            where=str(self._address),
            found=reason(fault),
            remedy=AGAIN,
            passes=Passing.NO if over else None,
        )


def _replacing(entries: Sequence[Recorded]) -> dict[str, str]:
    """What makes a write replace the rows of these consecutive entries."""
    first, last = entries[0].entry, entries[-1].entry
    between = f"sequence >= {first.sequence} AND sequence <= {last.sequence}"
    return {"replaceWhere": f"pipeline = {literal(first.pipeline)} AND {between}"}


def _of(table: DataFrame, pipeline: str) -> DataFrame:
    return table.where(F.col("pipeline") == pipeline)
