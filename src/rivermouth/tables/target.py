"""The target table: created on the first run from the configured schema, checked ever after."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermouth.address import Address, create_table, literal, quoted
from rivermouth.config import Pipeline
from rivermouth.decode import KAFKA_STRUCT
from rivermouth.errors import SchemaDiffers
from rivermouth.write.replace import TOMBSTONE


def create_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """Create the table at ``address`` with the configured columns and ``_kafka``, if missing."""
    properties = ", ".join(
        f"{literal(name)} = {literal(value)}" for name, value in pipeline.target.properties.items()
    )
    more = f"TBLPROPERTIES ({properties})" if properties else ""
    create_table(session, address, _ddl(pipeline), more)


def add_mark(session: SparkSession, address: Address) -> None:
    """Give the table the column of ``write.replace`` that marks rows as deleted, if missing."""
    if TOMBSTONE not in address.read(session).columns:
        session.sql(f"ALTER TABLE {address.sql} ADD COLUMN ({TOMBSTONE} BOOLEAN)")


def check_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """Raise SchemaDiffers where a configured column is missing or has another type.

    Columns that the table has beyond the configured ones stay null in what we write.
    """
    wanted = session.createDataFrame([], _ddl(pipeline)).schema
    found = {each.name: each for each in address.read(session).schema}
    for each in wanted:
        here = found.get(each.name)
        if here is None or here.dataType.simpleString() != each.dataType.simpleString():
            raise SchemaDiffers(
                f"column {each.name} is not as configured",
                where=f"{pipeline.name} {pipeline.target.table}",
                expected=f"{each.name} {each.dataType.simpleString()}",
                found=here.dataType.simpleString() if here else "no such column",
            )


def _ddl(pipeline: Pipeline) -> str:
    columns = [f"{quoted(each.name)} {each.type}" for each in pipeline.columns]
    return ", ".join([*columns, f"_kafka {KAFKA_STRUCT}"])
