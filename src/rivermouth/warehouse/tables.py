"""The target: making it where it is missing, and checking it.

Of two that make one table at once, Delta tells one so by a conflict, on any of their next steps:
what that ended is tried again.

Where no MERGE can delete, a row that a tombstone removes stays, with ``_tombstone`` true. It
counts as absent for every reader of ours. The column is known as ours by its comment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rivermouth.config import Pipeline
from rivermouth.config.layout import TARGET_FILE_SIZE
from rivermouth.config.properties import understood
from rivermouth.config.source import METADATA, kafka_field, kafka_struct
from rivermouth.errors import BatchFailed, CommitConflict, SchemaDiffers
from rivermouth.protocol.ways import INDEXED
from rivermouth.spark.tables import Address, literal, quoted, table_creation
from rivermouth.storage.store import STORE_FAULTS, Store, sync
from rivermouth.warehouse.delta.actions import Action, Commit, in_sql, leaves, schema_of
from rivermouth.warehouse.delta.creation import Schema, compact, creation
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.ports import ATTEMPTS, Attempts

if TYPE_CHECKING:  # nothing of Spark is loaded before it is needed
    from pyspark.sql import DataFrame, SparkSession

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
    _until_done(lambda: session.sql(table_creation(address, columns, more)), attempts)


def _until_done(act: Callable[[], object], attempts: Attempts) -> None:
    """Do it; again where somebody did something else to the table at the same time."""
    from rivermouth.spark.errors import is_conflict, said

    conflict: Exception | None = None
    for _ in attempts.each():
        try:
            act()
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
    if address.path and TARGET_FILE_SIZE in _created_with(pipeline, address):
        # Delta outside Databricks does not know this one; the session of all others stays strict.
        session = session.newSession()
        session.conf.set("spark.databricks.delta.allowArbitraryProperties.enabled", "true")
    _until_done(lambda: session.sql(creating(pipeline, address)), attempts)


def creating(pipeline: Pipeline, address: Address) -> str:
    """The statement by which Spark creates the target, if it is missing, see ``create_target``."""
    properties = _created_with(pipeline, address).items()
    said = ", ".join(f"{literal(name)} = {literal(each)}" for name, each in properties)
    more = [_layout(pipeline), f"TBLPROPERTIES ({said})" if said else ""]
    ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns_of(pipeline))
    return table_creation(address, ddl, " ".join(filter(None, more)))


def _created_with(pipeline: Pipeline, address: Address) -> dict[str, str]:
    return _properties(pipeline, {VECTORS: "true"} if address.path else {})


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
    """Why Spark has to create a table of a lake, in a clause; empty: ``first_commit`` is the same.

    ``settings`` are the names of those that a session would have beside ours.
    """
    for name, value in pipeline.target.properties.items():
        if name.lower().startswith("delta.") and not understood(name, value):
            return f"its property {name} is Delta's to judge"
    if pipeline.target.cluster_by:
        return "it is clustered"
    if any(name.startswith(_DEFAULTS) for name in settings):
        return "the settings of the session say what it gets"
    return ""


def first_commit(pipeline: Pipeline) -> Commit:
    """The first commit of a table in a lake, the same as by ``create_target``."""
    properties = {"delta.checkpointInterval": "50", **_properties(pipeline, {VECTORS: "true"})}
    on = {name.lower() for name, value in properties.items() if value.lower() == "true"}
    features = ["deletionVectors"] if VECTORS.lower() in on else []
    columns = columns_of(pipeline)
    if any("TIMESTAMP_NTZ" in kind for _, kind in columns):
        features.append("timestampNtz")
    writers = ["changeDataFeed"] if "delta.enablechangedatafeed" in on else []
    partitions = pipeline.target.partition_by
    return creation(schema_of(columns), properties, features, writers, partitions)


def _properties(pipeline: Pipeline, ours: Mapping[str, str]) -> dict[str, str]:
    """What a new table gets: what is given, and else what the layout asks for, and ``ours``."""
    given = pipeline.target.properties
    taken = {name.lower() for name in given}
    own = {**ours, **_own_properties(pipeline)}
    return {name: each for name, each in own.items() if name.lower() not in taken} | {**given}


def create_by_commit(pipeline: Pipeline, store: Store) -> None:
    """Make that commit, unless somebody else makes the table at the same time.

    The names of new folders reach the disk, too. Raises BatchFailed.
    """
    try:
        if DeltaLog(store).commit(first_commit(pipeline)) and store.folder is not None:
            for each in (store.folder, *store.folder.parents[:2]):
                sync(each)
    except STORE_FAULTS as fault:
        what = "the table cannot be created"
        raise BatchFailed(what, where=store.where, found=str(fault)) from fault


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


def lacking(pipeline: Pipeline, schema: Schema) -> list[tuple[str, str]]:
    """The configured columns that a table does not have, with their types in SQL."""
    there = {each["name"].lower() for each in schema["fields"]}
    every = ((each.name, each.type) for each in pipeline.table_columns)
    return [(name, kind) for name, kind in every if name.lower() not in there]


def grown(schema: Schema, columns: Iterable[tuple[str, str]]) -> Schema:
    """What a schema is with these columns added."""
    return {**schema, "fields": [*schema["fields"], *schema_of(columns)["fields"]]}


def add_columns(
    session: SparkSession,
    address: Address,
    columns: Iterable[tuple[str, str]],
    attempts: Attempts = ATTEMPTS,
) -> None:
    """Add them at the end of a table. They are null in the rows that are there."""
    statement = adding(address, columns)
    _until_done(lambda: session.sql(statement), attempts)


def add_by_commit(
    store: Store, columns: Sequence[tuple[str, str]], attempts: Attempts = ATTEMPTS
) -> None:
    """The same by a commit of ours, to a table that is understood.

    Raises BatchFailed, and CommitConflict where others commit for as long as it is tried.
    """
    log = DeltaLog(store)
    for _ in attempts.each():
        definition = log.definition()
        if definition is None:
            break
        there = {each["name"].lower() for each in definition.schema["fields"]}
        new = [each for each in columns if each[0].lower() not in there]
        try:
            if not new or log.commit(_with_columns(log, new)):
                return
        except STORE_FAULTS as fault:
            what = "the columns cannot be added"
            raise BatchFailed(what, where=store.where, found=str(fault)) from fault
    raise CommitConflict("commits of others were in the way", where=store.where)


def _with_columns(log: DeltaLog, new: Sequence[tuple[str, str]]) -> Commit:
    """The commit that adds columns to the table as it is."""
    metadata, protocol = dict(log.state.metadata), dict(log.state.protocol)
    schema = grown(json.loads(metadata["schemaString"]), new)
    metadata["schemaString"] = compact(schema)
    actions: list[Action] = [{"metaData": metadata}]
    feature = "timestampNtz"
    if any("TIMESTAMP_NTZ" in kind for _, kind in new) and not _has_feature(protocol, feature):
        actions.append({"protocol": _with_feature(protocol, feature)})
    added = [{"column": each} for each in schema_of(new)["fields"]]
    return Commit("ADD COLUMNS", parameters={"columns": compact(added)}, definition=actions)


def _has_feature(protocol: Mapping[str, Any], feature: str) -> bool:
    return feature in (protocol.get("writerFeatures") or ())


def _with_feature(protocol: Mapping[str, Any], feature: str) -> dict[str, Any]:
    """A protocol with one more feature; versions without a list had these two by themselves."""
    readers = [*(protocol.get("readerFeatures") or ()), feature]
    writers = [*(protocol.get("writerFeatures") or ("appendOnly", "invariants")), feature]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {**versions, "readerFeatures": readers, "writerFeatures": writers}


def adding(address: Address, columns: Iterable[tuple[str, str]]) -> str:
    """The statement by which Spark adds columns."""
    every = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    return f"ALTER TABLE {address.sql} ADD COLUMNS ({every})"


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
                remedy=_metadata_remedy(pipeline, address, here)
                if ours
                else _remedy(pipeline, address, name, here),
            )
    if pipeline.shape.keyed and foreign_tombstone_column(schema):
        raise SchemaDiffers(
            f"the table has a column {TOMBSTONE} of somebody else's",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="no such column: an upsert takes rows where it is true for deleted",
            remedy="Rename it",
        )


def _remedy(pipeline: Pipeline, address: Address, name: str, there: Any) -> str:
    """What to do about a column that the table lacks, or has as another type."""
    if there is not None:
        return f"Write {name} {in_sql(there).upper()} in schema, or let it write a new table"
    column = [(e.name, e.type) for e in pipeline.table_columns if e.name == name]
    return f"Add it: {adding(address, column)}" if column else ""


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
