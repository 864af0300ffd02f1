"""The target table: created on the first run from the configured schema, checked ever after."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.errors import SchemaDiffers
from rivermouth.formats.decoded import KAFKA_STRUCT
from rivermouth.spark.address import Address, create_table, literal, quoted
from rivermouth.write.commit import TOMBSTONE

_MARK = "rivermouth: a deleted row, to be removed"


def create_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """Create the table at ``address`` with the configured columns and ``_kafka``, if missing."""
    properties = ", ".join(
        f"{literal(name)} = {literal(value)}" for name, value in pipeline.target.properties.items()
    )
    more = f"TBLPROPERTIES ({properties})" if properties else ""
    create_table(session, address, _ddl(pipeline), more)


def add_mark(session: SparkSession, address: Address) -> None:
    """Give the table the column of ``write.replace`` that marks rows as deleted, if missing."""
    if not has_mark(session, address):
        column = f"{TOMBSTONE} BOOLEAN COMMENT {literal(_MARK)}"
        session.sql(f"ALTER TABLE {address.sql} ADD COLUMN ({column})")


def has_mark(session: SparkSession, address: Address) -> bool:
    """Whether the table has the column that marks rows as deleted."""
    return TOMBSTONE in address.read(session).columns


def check_target(session: SparkSession, pipeline: Pipeline, address: Address) -> None:
    """Raise SchemaDiffers where a configured column is missing or has another type.

    Columns that the table has beyond the configured ones stay null in what we write; but for
    an upsert a column that is called like our mark and is not it, is refused.
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
    mark = found.get(TOMBSTONE)
    foreign = mark is not None and mark.metadata.get("comment") != _MARK
    if foreign and pipeline.shape.keyed:
        raise SchemaDiffers(
            f"the table has a column {TOMBSTONE} of somebody else's",
            where=f"{pipeline.name} {pipeline.target.table}",
            expected="no such column: an upsert takes rows where it is true for deleted",
            remedy="Rename it",
        )


def _ddl(pipeline: Pipeline) -> str:
    columns = [f"{quoted(each.name)} {each.type}" for each in pipeline.columns]
    return ", ".join([*columns, f"_kafka {KAFKA_STRUCT}"])
