"""Tables under names in a catalog. Whose driver may write is decided by Delta's ``txn`` alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from rivermouth.config import OFFSETS_TABLE, Catalog, Pipeline, TableName
from rivermouth.errors import CommitFailed
from rivermouth.local.scratch import volumes_root
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.history import Recorded
from rivermouth.protocol.offsets import OffsetRange
from rivermouth.spark.address import Address
from rivermouth.spark.errors import FAULTS, said, translate
from rivermouth.warehouse.catalog.log import HistoryLog
from rivermouth.warehouse.catalog.offsets import CatalogOffsets
from rivermouth.warehouse.ports import Books
from rivermouth.write.commit import record


class CatalogPlace:
    """The tables of a configuration in the catalog that ``names`` says."""

    def __init__(self, session: SparkSession, names: Catalog) -> None:
        self._session = session
        self._names = names
        self._offsets = CatalogOffsets(session, self.offsets())

    def address(self, table: TableName) -> Address:
        """See ``Place.address``."""
        return Address(name=(self._names.catalog, table.schema, table.name))

    def offsets(self) -> Address:
        """See ``Place.offsets``."""
        return Address(name=(self._names.catalog, self._names.schema, OFFSETS_TABLE.name))

    @contextmanager
    def hold(self, table: TableName) -> Iterator[None]:
        """See ``Place.hold``: nobody is kept out; a second driver's commit fails."""
        del table
        yield

    def books(self, pipeline: Pipeline) -> Books:
        """See ``Place.books``."""
        address = self.address(pipeline.target.table)
        return Books(
            log=HistoryLog(self._session, address),
            offsets=self._offsets,
            with_rows=partial(_with_rows, self._session, address),
            record=partial(record, address=address),
            translate=partial(translate, where=pipeline.name),
        )

    def scratch(self) -> Path:
        """See ``Place.scratch``: the volume."""
        names = self._names
        return volumes_root() / names.catalog / names.schema / names.volume


def _with_rows(
    session: SparkSession, address: Address, recorded: Sequence[Recorded]
) -> list[Recorded]:
    """The same entries, each with its ``rows``: counted in the table where none are known.

    One query, which reads the files that statistics do not rule out. Raises CommitFailed.
    """
    unknown = [each for each in recorded if each.entry.rows is None]
    ranges = [one for each in unknown for one in each.entry.ranges]
    if not ranges:
        return [*recorded]
    counts = [F.count_if(_inside(each)).alias(f"c{n}") for n, each in enumerate(ranges)]
    offset = F.col("_kafka").getField("offset")
    bounds = offset.between(
        min(each.from_offset for each in ranges), max(each.until_offset for each in ranges)
    )
    try:
        row = address.read(session).where(bounds).select(*counts).collect()[0]
    except FAULTS as fault:
        raise CommitFailed(
            "the commits stand, but their rows cannot be counted",
            where=str(address),
            found=said(fault).partition("\n")[0] or repr(fault),
            remedy="Run again: the start counts them and brings the offsets table up to date",
        ) from fault
    numbers = iter(row)
    return [
        each
        if each.entry.rows is not None
        else replace(
            each,
            entry=replace(
                each.entry, rows=tuple(RowCounts(next(numbers), 0) for _ in each.entry.ranges)
            ),
        )
        for each in recorded
    ]


def _inside(each: OffsetRange) -> Column:
    kafka = F.col("_kafka")
    here = (kafka.getField("topic") == each.topic) & (kafka.getField("partition") == each.partition)
    offset = kafka.getField("offset")
    return here & (offset >= each.from_offset) & (offset < each.until_offset)
