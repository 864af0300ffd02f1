"""What a table is to get before the next batch, and whether a run may write it at all."""

from __future__ import annotations

from rivermouth.config import Pipeline
from rivermouth.config.values import OnSchemaChange
from rivermouth.errors.store import StoreRefused
from rivermouth.protocol.ways import Definition, why_not
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import in_bucket
from rivermouth.storage.store import Store
from rivermouth.warehouse.delta.creation import Schema
from rivermouth.warehouse.ledger import read_ledger
from rivermouth.warehouse.ports import LedgerStore
from rivermouth.warehouse.tables import check_schema, grown, lacking


def growth(
    pipeline: Pipeline, address: Address, schema: Schema, store: LedgerStore
) -> list[tuple[str, str]]:
    """The columns that a table with this schema gets, with their types in SQL.

    Raises SchemaDiffers where the table is not as configured then.
    """
    new = _new_columns(pipeline, schema, store)
    check_schema(pipeline, address, grown(schema, new))
    return new


def writable(pipeline: Pipeline, there: Definition | None, files: Store | None) -> str:
    """Why only Spark can write a table; empty: others can. ``files``: see ``in_bucket``.

    Raises StoreRefused where Spark cannot either.
    """
    reason = "" if there is None else why_not(there)
    if in_bucket(files) and reason:
        raise StoreRefused.of_spark(pipeline.name, reason)
    return reason


def _new_columns(pipeline: Pipeline, schema: Schema, store: LedgerStore) -> list[tuple[str, str]]:
    """The columns that the table is to get: the configuration has got them since the newest entry.

    One that this entry knows is gone, which somebody else did. A total of what has been read
    already cannot be made up for, nor is it known which columns own code made.
    """
    applies = pipeline.target.on_schema_change is OnSchemaChange.APPLY
    new = lacking(pipeline, schema) if applies else []
    if not new or pipeline.shape.totals or pipeline.made_by:
        return []
    newest = read_ledger(store, pipeline).newest
    known = {} if newest is None else dict(newest.columns)
    return [] if not known or known.keys() & dict(new).keys() else new
