"""The target table: created on the first run from the configured schema, checked ever after."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from rivermouth.config import Pipeline
from rivermouth.config.metadata import METADATA
from rivermouth.errors import SchemaDiffers
from rivermouth.formats.decoded import kafka_field, kafka_struct
from rivermouth.spark.address import Address, literal, quoted
from rivermouth.warehouse.attempts import ATTEMPTS, Attempts
from rivermouth.warehouse.creation import make_table
from rivermouth.write.soft_delete import TOMBSTONE, foreign_mark


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
    if pipeline.shape.keyed and foreign_mark(schema):
        raise SchemaDiffers(
            f"the table has a column {TOMBSTONE} of somebody else's",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="no such column: an upsert takes rows where it is true for deleted",
            remedy="Rename it",
        )


def _metadata_remedy(pipeline: Pipeline, address: Address, there: DataType) -> str:
    """What to do where ``_kafka`` of the table has other fields than ``source.metadata`` names."""
    told = there.names if isinstance(there, StructType) else []
    asked = pipeline.source.metadata
    if more := [each for each in METADATA if each in told and each not in asked]:
        every = ", ".join(each for each in METADATA if each in (*asked, *more))
        return f"Write source: {{metadata: [{every}]}}, as the table has it"
    # Delta's writer matches fields by name, but their order is to be that of a new table.
    before = {"key": " AFTER timestamp"}
    lacking = [each for each in asked if each not in told]
    added = ", ".join(f"_kafka.{e} {kafka_field(e)}{before.get(e, '')}" for e in lacking)
    statement = f"ALTER TABLE {address.sql} ADD COLUMNS ({added})"
    return f"Add them, null in the rows that are there: {statement}" if added else ""


def no_rows(session: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The rows of the target as long as it is empty."""
    return session.createDataFrame([], _ddl(pipeline))


_BY_ITSELF = 32
_NUMBER = "delta.dataskippingnumindexedcols"


def _with_statistics(pipeline: Pipeline) -> int:
    """Of how many leaf columns, in their order, Delta keeps statistics."""
    given = {name.lower(): value for name, value in pipeline.target.properties.items()}
    number = given.get(_NUMBER, "")
    if number == "-1":
        return sys.maxsize
    return int(number) if number.isdigit() else _BY_ITSELF


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
