"""Soft deletes: a column of the table that marks rows as deleted, until a statement removes them.

Where no MERGE can delete, a row that a tombstone removes stays, with ``_tombstone`` true. It
counts as absent for every reader of ours. The column is known as ours by its comment.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rivermouth.spark.address import Address, literal

TOMBSTONE = "_tombstone"
"""BOOLEAN; true in a deleted row, else null."""
_COMMENT = "rivermouth: a deleted row, to be removed"


def add_mark(session: SparkSession, address: Address) -> None:
    """Give the table the column that marks rows as deleted, if missing."""
    if not has_mark(session, address):
        column = f"{TOMBSTONE} BOOLEAN COMMENT {literal(_COMMENT)}"
        session.sql(f"ALTER TABLE {address.sql} ADD COLUMN ({column})")


def has_mark(session: SparkSession, address: Address) -> bool:
    """Whether the table has the column that marks rows as deleted."""
    return TOMBSTONE in address.read(session).columns


def foreign_mark(schema: StructType) -> bool:
    """Whether a table has a column of that name that is not ours."""
    found = [each for each in schema if each.name == TOMBSTONE]
    return any(each.metadata.get("comment") != _COMMENT for each in found)
