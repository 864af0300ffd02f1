"""The target and the quarantine: making them where they are missing, and checking a target.

Of two that make one table at once, Delta tells one so by a conflict, on any of their next steps.
So a process makes each side table once, and what a conflict with another process ended is tried
again.

Where no MERGE can delete, a row that a tombstone removes stays, with ``_tombstone`` true. It
counts as absent for every reader of ours. The column is known as ours by its comment.

Bad records are written *ahead* of the commit that accounts for them, under its id: a row counts
only if that commit is in the ledger. So a crash in between neither loses nor doubles.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from rivermouth.config import Pipeline
from rivermouth.config.source import METADATA, kafka_field, kafka_struct
from rivermouth.debug import reach
from rivermouth.errors import BatchFailed, SchemaDiffers
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.ways import INDEXED
from rivermouth.spark.errors import is_conflict, said
from rivermouth.spark.tables import Address, create_table, literal, quoted
from rivermouth.warehouse.ports import ATTEMPTS, Attempts

_SOMEBODY_WAS_FASTER = re.compile(r"ALREADY_EXISTS|FileAlreadyExistsException")


def make_table(
    session: SparkSession,
    address: Address,
    columns: str,
    more: str = "",
    attempts: Attempts = ATTEMPTS,
) -> None:
    """Create a table with ``columns`` (SQL), if missing; ``more`` ends the statement."""
    conflict: Exception | None = None
    for _ in attempts.each():
        try:
            create_table(session, address, columns, more)
            return
        except Exception as fault:
            if not (is_conflict(fault) or _SOMEBODY_WAS_FASTER.search(said(fault))):
                raise
            conflict = fault
    if conflict is not None:
        raise conflict


class MadeOnce:
    """Tables that the pipelines of one run share: whoever needs one first makes it."""

    def __init__(self) -> None:
        self._making: dict[Address, threading.Lock] = {}
        self._made: set[Address] = set()

    def make(
        self, session: SparkSession, address: Address, columns: str, attempts: Attempts = ATTEMPTS
    ) -> None:
        """Create a table with ``columns`` (SQL), if missing and not made here before."""
        with self._making.setdefault(address, threading.Lock()):
            if address not in self._made:
                make_table(session, address, columns, attempts=attempts)
                self._made.add(address)


TOMBSTONE = "_tombstone"
"""BOOLEAN; true in a deleted row, else null."""
_COMMENT = "rivermouth: a deleted row, to be removed"


def add_tombstone_column(session: SparkSession, address: Address) -> None:
    """Give the table the column that marks rows as deleted, if missing."""
    if not has_tombstone_column(session, address):
        column = f"{TOMBSTONE} BOOLEAN COMMENT {literal(_COMMENT)}"
        session.sql(f"ALTER TABLE {address.sql} ADD COLUMN ({column})")


def has_tombstone_column(session: SparkSession, address: Address) -> bool:
    """Whether the table has the column that marks rows as deleted."""
    return TOMBSTONE in address.read(session).columns


def foreign_tombstone_column(schema: StructType) -> bool:
    """Whether a table has a column of that name that is not ours."""
    found = [each for each in schema if each.name == TOMBSTONE]
    return any(each.metadata.get("comment") != _COMMENT for each in found)


def create_target(
    session: SparkSession, pipeline: Pipeline, address: Address, attempts: Attempts = ATTEMPTS
) -> None:
    """Create the table at ``address`` with the configured columns and ``_kafka``, if missing.

    ``_kafka`` is the last column, and the first of a table with more columns than Delta keeps
    statistics of: by them ``status``, ``verify`` and a catalog's counts find the files of a range.
    Totals have none: a row of theirs is of many records.
    """
    properties = ", ".join(
        f"{literal(name)} = {literal(value)}" for name, value in pipeline.target.properties.items()
    )
    more = f"TBLPROPERTIES ({properties})" if properties else ""
    schema = no_rows(session, pipeline).schema
    ddl = _ddl(pipeline, kafka_first=_leaves(schema) > _with_statistics(pipeline))
    make_table(session, address, ddl, more, attempts)


def check_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """Raise SchemaDiffers where a configured column is missing or has another type.

    Columns that the table has beyond the configured ones stay null in what we write; but for
    an upsert a column that is called like our mark and is not it, is refused.
    """
    wanted = no_rows(session, pipeline).schema
    schema = address.read(session).schema
    found = {each.name: each for each in schema}
    for each in wanted:
        here = found.get(each.name)
        if here is None or here.dataType.simpleString() != each.dataType.simpleString():
            ours = here is not None and each.name == "_kafka"
            remedy = _metadata_remedy(pipeline, address, here.dataType) if here and ours else ""
            raise SchemaDiffers(
                f"column {each.name} is not as configured",
                where=f"{pipeline.name} {pipeline.target.table}",
                expected=f"{each.name} {each.dataType.simpleString()}",
                found=here.dataType.simpleString() if here else "no such column",
                remedy=remedy,
            )
    if pipeline.shape.keyed and foreign_tombstone_column(schema):
        raise SchemaDiffers(
            f"the table has a column {TOMBSTONE} of somebody else's",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="no such column: an upsert takes rows where it is true for deleted",
            remedy="Rename it",
        )


def _metadata_remedy(pipeline: Pipeline, address: Address, there: DataType) -> str:
    """What to do where ``_kafka`` of the table has other fields than ``source.metadata`` names."""
    fields = there.names if isinstance(there, StructType) else []
    asked = pipeline.source.metadata
    if more := [each for each in METADATA if each in fields and each not in asked]:
        every = ", ".join(each for each in METADATA if each in (*asked, *more))
        return f"Write source: {{metadata: [{every}]}}, as the table has it"
    # Delta's writer matches fields by name, but their order is to be that of a new table.
    before = {"key": " AFTER timestamp"}
    lacking = [each for each in asked if each not in fields]
    added = ", ".join(f"_kafka.{e} {kafka_field(e)}{before.get(e, '')}" for e in lacking)
    statement = f"ALTER TABLE {address.sql} ADD COLUMNS ({added})"
    return f"Add them, null in the rows that are there: {statement}" if added else ""


def no_rows(session: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows of the target as long as it is empty."""
    return session.createDataFrame([], _ddl(pipeline))


_NUMBER = "delta.dataskippingnumindexedcols"


def _with_statistics(pipeline: Pipeline) -> int:
    """Of how many leaf columns, in their order, Delta keeps statistics."""
    given = {name.lower(): value for name, value in pipeline.target.properties.items()}
    number = given.get(_NUMBER, "")
    if number == "-1":
        return sys.maxsize
    return int(number) if number.isdigit() else INDEXED


def _ddl(pipeline: Pipeline, *, kafka_first: bool = False) -> str:
    columns = [f"{quoted(each.name)} {each.type}" for each in pipeline.table_columns]
    if pipeline.shape.totals:
        return ", ".join(columns)
    kafka = f"_kafka {kafka_struct(pipeline.source.metadata)}"
    return ", ".join([kafka, *columns] if kafka_first else [*columns, kafka])


def _leaves(kind: DataType) -> int:
    if isinstance(kind, StructType):
        return sum(_leaves(each.dataType) for each in kind.fields)
    return 1


COLUMNS = (
    "commit STRING, pipeline STRING, sequence BIGINT, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, code STRING, reason STRING, "
    "quarantined_at TIMESTAMP"
)
KAFKA_FIELDS = ("topic", "partition", "offset", "timestamp")


def create_quarantine(session: SparkSession, address: Address) -> None:
    """Create the table, if missing. In a catalog a write that creates a table counts nothing."""
    make_table(session, address, COLUMNS)


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine at ``address``; the first bad record creates it, if nothing else has.

    ``reasons`` say what the codes of the pipeline's records mean, see ``Format.all_reasons``.
    ``make`` creates it, where pipelines may do that at the same time: each of their writes would.
    """

    address: Address
    reasons: Mapping[str, str]
    make: Callable[[], object] = lambda: None

    def write(self, bad: DataFrame, plan: CommitPlan, seen: int | None, before: int = 0) -> None:
        """Append the bad rows of a decoded batch under the plan's commit id.

        ``seen`` is how many there were, where that is known; ``before``, how many rows of other
        records there are under that id already. Raises BatchFailed where others were written: Kafka
        has deleted records between two reads of one range.
        """
        self.make()
        kafka = F.col("_kafka")
        rows = bad.select(
            F.lit(plan.commit).alias("commit"),
            F.lit(plan.draft.pipeline).alias("pipeline"),
            F.lit(plan.sequence).cast("bigint").alias("sequence"),
            *(kafka.getField(name).alias(name) for name in KAFKA_FIELDS),
            "key",
            "value",
            "code",
            self._reason().alias("reason"),
            F.current_timestamp().alias("quarantined_at"),
        )
        observation = Observation()
        # One file, but not one task that reads and decodes the whole batch: only bad rows move.
        one = rows.repartition(1).observe(observation, F.count(F.lit(1)).alias("written"))
        writer = one.write.mode("append")
        note = f"rivermouth quarantine of commit {plan.commit}"
        self.address.write(writer.option("userMetadata", note))
        reach("P12")
        if seen is None:
            return
        written = observation.get.get("written")
        if seen != written:  # a server may lose what it observed, or count a stage twice
            written = self._written(bad.sparkSession, plan) - before
        if seen != written:
            raise BatchFailed(
                "Kafka gave other bad records when the range was read again",
                where=plan.draft.pipeline,
                expected=f"{seen} records",
                found=f"{written} records",
            )

    def _written(self, session: SparkSession, plan: CommitPlan) -> int:
        """How many rows of this commit there are, by a query of its own."""
        return self.address.read(session).where(F.col("commit") == plan.commit).count()

    def _reason(self) -> Column:
        texts = [F.lit(text) for pair in self.reasons.items() for text in pair]
        return F.coalesce("reason", F.create_map(*texts)[F.col("code")])
