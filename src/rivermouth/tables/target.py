"""The target table: created on the first run from the configured schema, checked ever after."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermouth.config import Pipeline
from rivermouth.decode import KAFKA_STRUCT
from rivermouth.errors import SchemaDiffers
from rivermouth.write.upsert import quoted


def create_target(session: SparkSession, pipeline: Pipeline, path: str) -> None:
    """Create the table at ``path`` with the configured columns and ``_kafka``, if missing."""
    properties = ", ".join(
        f"{_literal(name)} = {_literal(value)}"
        for name, value in pipeline.target.properties.items()
    )
    session.sql(
        f"CREATE TABLE IF NOT EXISTS delta.{quoted(path)} ({_ddl(pipeline)}) USING delta"
        + (f" TBLPROPERTIES ({properties})" if properties else "")
    )


def check_target(session: SparkSession, pipeline: Pipeline, path: str) -> None:
    """Raise SchemaDiffers where a configured column is missing or has another type.

    Columns that the table has beyond the configured ones stay null in what we write.
    """
    wanted = session.createDataFrame([], _ddl(pipeline)).schema
    found = {each.name: each for each in session.read.format("delta").load(path).schema}
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


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
