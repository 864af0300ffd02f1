"""A pipeline's table before its first batch: made where it is missing, grown, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rivermouth.config import Pipeline
from rivermouth.errors import LogUnreadable, RivermouthError
from rivermouth.protocol.ways import Definition
from rivermouth.spark.tables import Address
from rivermouth.storage.lake import in_bucket
from rivermouth.warehouse.delta.creation import Schema
from rivermouth.warehouse.delta.log import DeltaLog
from rivermouth.warehouse.growth import growth, writable
from rivermouth.warehouse.ports import Attempts, LedgerLog, LedgerStore
from rivermouth.warehouse.tables import (
    add_by_commit,
    add_columns,
    create_by_commit,
    create_target,
    why_by_spark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermouth.run.assembly import Assembly


def prepared(
    pipeline: Pipeline, shared: Assembly, attempts: Attempts, store: LedgerStore
) -> tuple[str, ...]:
    """Make the tables that are missing, and check the target. Raises SchemaDiffers.

    Of a table of a lake the log tells all of that, without Spark. A session that runs already, or
    settings of it, may say what a new table gets. Returns which columns a table that was there has
    got. Raises StoreRefused where only Spark could write a table in an object store.
    """
    address = shared.warehouse.address(pipeline.target.table)
    there = definition_of(store.log)
    files = None if shared.lake is None else shared.lake.store(pipeline.target.table)
    # A session that runs commits to a folder, too, and its commits and ours are not exact.
    own = in_bucket(files) or shared.spark.started is None
    if there is None:
        if files is not None and own and not why_by_spark(pipeline, shared.config.spark):
            create_by_commit(pipeline, files)
        else:
            create_target(shared.session, pipeline, address, attempts)
            shared.warehouse.prepare(shared.session, pipeline)
        there = definition_of(store.log)
    schema = there.schema if there is not None else schema_of(address, shared.session, None)
    new = growth(pipeline, address, schema, store)
    reason = writable(pipeline, there, files)
    if new and files is not None and own and not reason:
        add_by_commit(files, new, attempts)
    elif new:
        add_columns(shared.session, address, new, attempts)
    return tuple(f"{name} {kind}" for name, kind in new)


def schema_of(address: Address, session: SparkSession, there: Definition | None) -> Schema:
    """That of a table: as its log says (``there``), or as Spark reads it."""
    if there is None:
        found: Schema = address.read(session).schema.jsonValue()
        return found
    return there.schema


def definition_of(log: LedgerLog) -> Definition | None:
    """What a log says of its table; None: there is none, or it is not in a folder.

    Raises LogUnreadable and LedgerBroken.
    """
    return log.definition() if isinstance(log, DeltaLog) else None


@contextmanager
def torn_commit_told(log: LedgerLog) -> Iterator[None]:
    """Where Spark cannot read a table, LedgerBroken is raised if a commit of its log is torn.

    Spark reads each commit that delta-rs made, since there is no checksum file, and says less.
    """
    try:
        yield
    except RivermouthError:
        raise
    except Exception:
        with suppress(LogUnreadable):
            for _ in log.commits():
                pass
        raise
