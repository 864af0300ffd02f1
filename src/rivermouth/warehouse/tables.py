"""The target and the quarantine: making them where they are missing, and checking a target.

Of two that make one table at once, Delta tells one so by a conflict, on any of their next steps:
what that ended is tried again.

Where no MERGE can delete, a row that a tombstone removes stays, with ``_tombstone`` true. It
counts as absent for every reader of ours. The column is known as ours by its comment.

Bad records are written *ahead* of the commit that accounts for them, under its id: a row counts
only if that commit is in the ledger. So a crash in between neither loses nor doubles.
"""

from __future__ import annotations

import json
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rivermouth.config import Pipeline
from rivermouth.config.layout import TARGET_FILE_SIZE
from rivermouth.config.source import METADATA, kafka_field, kafka_struct
from rivermouth.debug import reach
from rivermouth.errors import BatchFailed, SchemaDiffers
from rivermouth.protocol.commits import CommitPlan
from rivermouth.protocol.ways import INDEXED
from rivermouth.spark.tables import Address, create_table, literal, quoted
from rivermouth.warehouse.delta.actions import Commit, in_sql, leaves, schema_of
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.delta.store import STORE_FAULTS, sync
from rivermouth.warehouse.ports import ATTEMPTS, Attempts

if TYPE_CHECKING:  # nothing of Spark is loaded before it is needed
    from pyspark.sql import Column, DataFrame, SparkSession

Schema = Mapping[str, Any]
"""That of a table, in Delta's JSON."""

_DEFAULTS = "spark.databricks.delta.properties.defaults."
_SOMEBODY_WAS_FASTER = re.compile(r"ALREADY_EXISTS|FileAlreadyExistsException")


def make_table(
    session: SparkSession,
    address: Address,
    columns: str,
    more: str = "",
    attempts: Attempts = ATTEMPTS,
) -> None:
    """Create a table with ``columns`` (SQL), if missing; ``more`` ends the statement."""
    from rivermouth.spark.errors import is_conflict, said

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


VECTORS = "delta.enableDeletionVectors"
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


def foreign_tombstone_column(schema: Schema) -> bool:
    """Whether a table has a column of that name that is not ours."""
    found = [each for each in schema["fields"] if each["name"] == TOMBSTONE]
    return any(each["metadata"].get("comment") != _COMMENT for each in found)


def create_target(
    session: SparkSession, pipeline: Pipeline, address: Address, attempts: Attempts = ATTEMPTS
) -> None:
    """Create the table at ``address`` with the configured columns and ``_kafka``, if missing.

    At a path it has deletion vectors, unless its properties say something else.

    ``_kafka`` is the last column, and the first of a table with more columns than Delta keeps
    statistics of: by them ``status``, ``verify`` and a catalog's counts find the files of a range.
    Totals have none: a row of theirs is of many records.
    """
    columns, given = columns_of(pipeline), pipeline.target.properties
    own = _own_properties(pipeline) | ({VECTORS: "true"} if address.path else {})
    taken = {name.lower() for name in given}
    properties = {name: each for name, each in own.items() if name.lower() not in taken} | {**given}
    said = ", ".join(f"{literal(name)} = {literal(each)}" for name, each in properties.items())
    more = [_layout(pipeline), f"TBLPROPERTIES ({said})" if said else ""]
    if address.path and TARGET_FILE_SIZE in properties:
        # Delta outside Databricks does not know this one; the session of all others stays strict.
        session = session.newSession()
        session.conf.set("spark.databricks.delta.allowArbitraryProperties.enabled", "true")
    ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    make_table(session, address, ddl, " ".join(filter(None, more)), attempts)


def _layout(pipeline: Pipeline) -> str:
    """The clause that lays out the table; empty: there is none."""
    target = pipeline.target
    clauses = {"PARTITIONED BY": target.partition_by, "CLUSTER BY": target.cluster_by}
    said = (f"{each} ({', '.join(map(quoted, names))})" for each, names in clauses.items() if names)
    return " ".join(said)


def _own_properties(pipeline: Pipeline) -> dict[str, str]:
    """What the layout asks of the table.

    Delta clusters only by columns that have statistics: so many of the first have them.
    """
    target, found = pipeline.target, dict[str, str]()
    if target.file_size is not None:
        found[TARGET_FILE_SIZE] = str(target.file_size)
    fields = schema_of(columns_of(pipeline))["fields"]
    ends = accumulate(leaves(each["type"]) for each in fields)
    asked = [at for each, at in zip(fields, ends, strict=True) if each["name"] in target.cluster_by]
    if asked and max(asked) > _with_statistics(pipeline):
        found[INDEXED_COLUMNS] = str(max(asked))
    return found


def why_by_spark(pipeline: Pipeline, settings: Iterable[str]) -> str:
    """Why Spark has to create a table in a folder, in a clause; empty: ``creation`` is the same.

    ``settings`` are the names of those that a session would have beside ours.
    """
    if pipeline.target.properties:
        return "its properties are Delta's to judge"
    if pipeline.target.cluster_by:
        return "it is clustered"
    if any(name.startswith(_DEFAULTS) for name in settings):
        return "the settings of the session say what it gets"
    if any("TIMESTAMP_NTZ" in kind for _, kind in columns_of(pipeline)):
        return "a column of it asks for a feature"
    return ""


def creation(pipeline: Pipeline, now_ms: int) -> Commit:
    """The first commit of a table in a folder, the same as by ``create_target``."""
    partitions = [*pipeline.target.partition_by]
    properties = {"delta.checkpointInterval": "50", VECTORS: "true", **_own_properties(pipeline)}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _compact(schema_of(columns_of(pipeline))),
        "partitionColumns": partitions,
        "configuration": properties,
        "createdTime": now_ms,
    }
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "invariants", "appendOnly"],
    }
    return Commit(
        "CREATE TABLE",
        parameters={
            "partitionBy": _compact(partitions),
            "clusterBy": "[]",
            "isManaged": "false",
            "properties": _compact(properties),
        },
        blind=True,
        definition=({"metaData": metadata}, {"protocol": protocol}),
    )


def create_in_folder(pipeline: Pipeline, folder: Path) -> None:
    """Make that commit, unless somebody else makes the table at the same time.

    The names of the new folders reach the disk, too. Raises BatchFailed.
    """
    log = DeltaLog.of_folder(folder)
    try:
        if log.commit(creation(pipeline, int(time.time() * 1000))):
            for each in (folder, folder.parent, folder.parent.parent):
                sync(each)
    except STORE_FAULTS as fault:
        what = "the table cannot be created"
        raise BatchFailed(what, where=str(folder), found=str(fault)) from fault


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def columns_of(pipeline: Pipeline) -> list[tuple[str, str]]:
    """The columns of a table that we make, with their types in SQL, see ``create_target``."""
    columns = [(each.name, each.type) for each in pipeline.table_columns]
    if pipeline.shape.totals:
        return columns
    kafka = ("_kafka", kafka_struct(pipeline.source.metadata))
    several = leaves(schema_of([*columns, kafka])) > _with_statistics(pipeline)
    return [kafka, *columns] if several else [*columns, kafka]


def check_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """See ``check_schema``."""
    check_schema(pipeline, address, address.read(session).schema.jsonValue())


def check_schema(pipeline: Pipeline, address: Address, schema: Schema) -> None:
    """Raise SchemaDiffers where a configured column is missing or has another type.

    ``schema`` is that of the table at ``address``, in Delta's JSON. Columns that the table has
    beyond the configured ones stay null in what we write; but for an upsert a column that is called
    like our mark and is not it, is refused.
    """
    found = {each["name"]: each["type"] for each in schema["fields"]}
    for each in schema_of(columns_of(pipeline))["fields"]:
        name, wanted, here = each["name"], in_sql(each["type"]), found.get(each["name"])
        if here is None or in_sql(here) != wanted:
            ours = here is not None and name == "_kafka"
            raise SchemaDiffers(
                f"column {name} is not as configured",
                where=f"{pipeline.name} {pipeline.target.table}",
                expected=f"{name} {wanted}",
                found=in_sql(here) if here is not None else "no such column",
                remedy=_metadata_remedy(pipeline, address, here) if ours else "",
            )
    if pipeline.shape.keyed and foreign_tombstone_column(schema):
        raise SchemaDiffers(
            f"the table has a column {TOMBSTONE} of somebody else's",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="no such column: an upsert takes rows where it is true for deleted",
            remedy="Rename it",
        )


def _metadata_remedy(pipeline: Pipeline, address: Address, there: Any) -> str:
    """What to do where ``_kafka`` of the table has other fields than ``source.metadata`` names."""
    fields = [] if isinstance(there, str) else [e["name"] for e in there.get("fields", ())]
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
    ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns_of(pipeline))
    return session.createDataFrame([], ddl)


INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"


def _with_statistics(pipeline: Pipeline) -> int:
    """Of how many leaf columns, in their order, Delta keeps statistics."""
    given = {name.lower(): value for name, value in pipeline.target.properties.items()}
    number = given.get(INDEXED_COLUMNS.lower(), "")
    if number == "-1":
        return sys.maxsize
    return int(number) if number.isdigit() else INDEXED


COLUMNS = (
    "commit STRING, pipeline STRING, sequence BIGINT, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, key BINARY, value BINARY, code STRING, reason STRING, "
    "quarantined_at TIMESTAMP"
)
KAFKA_FIELDS = ("topic", "partition", "offset", "timestamp")


def create_quarantine(
    session: SparkSession, address: Address, attempts: Attempts = ATTEMPTS
) -> None:
    """Create the table, if missing. In a catalog a write that creates a table counts nothing."""
    make_table(session, address, COLUMNS, attempts=attempts)


@dataclass(frozen=True)
class QuarantineTable:
    """The quarantine at ``address``; the first bad record creates it, if nothing else has.

    ``reasons`` say what the codes of the pipeline's records mean, see ``Format.all_reasons``.
    ``make`` creates it, where pipelines may do that at the same time: each of their writes would.
    """

    address: Address
    reasons: Mapping[str, str]
    make: Callable[[], object] = lambda: None

    def write(self, bad: DataFrame, plan: CommitPlan, seen: int) -> None:
        """Append the bad rows of a decoded batch under the plan's commit id.

        ``seen`` is how many there were. Raises BatchFailed where others were written: Kafka has
        deleted records between two reads of one range.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

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
        written = observation.get.get("written")
        if seen != written:  # a server may lose what it observed, or count a stage twice
            there = self.address.read(bad.sparkSession)
            written = there.where(f"commit = {literal(plan.commit)}").count()
        if seen != written:
            raise BatchFailed(
                "Kafka gave other bad records when the range was read again",
                where=plan.draft.pipeline,
                expected=f"{seen} records",
                found=f"{written} records",
            )

    def _reason(self) -> Column:
        from pyspark.sql import functions as F

        texts = [F.lit(text) for pair in self.reasons.items() for text in pair]
        return F.coalesce("reason", F.create_map(*texts)[F.col("code")])
